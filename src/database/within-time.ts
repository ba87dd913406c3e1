/**
 * The promise's own outcome, or a rejection after `ms` milliseconds. The work behind the promise goes
 * on; the caller has to stop it.
 */
export function withinTime<T>(
  ms: number,
  promise: Promise<T>,
  onTimeout: () => Error = () => new Error(`no answer within ${ms} ms`),
): Promise<T> {
  // By hand, because Promise.race and finally() make several promises more for each message.
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(onTimeout()), ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        resolve(value);
      },
      (error: Error) => {
        clearTimeout(timer);
        reject(error);
      },
    );
  });
}
