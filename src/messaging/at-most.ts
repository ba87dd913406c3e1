/** Resolves when the promise does, or after `ms` milliseconds without it. */
export async function atMost(ms: number, promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const end = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  try {
    await Promise.race([promise, end]);
  } finally {
    clearTimeout(timer);
  }
}
