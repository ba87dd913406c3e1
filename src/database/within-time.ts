/**
 * The promise's own outcome, or a rejection after `ms` milliseconds. The work behind the promise goes
 * on; the caller has to stop it.
 */
export async function withinTime<T>(
  ms: number,
  promise: Promise<T>,
  onTimeout: () => Error = () => new Error(`no answer within ${ms} ms`),
): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(onTimeout()), ms);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}
