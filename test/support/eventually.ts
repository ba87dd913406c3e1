import { setTimeout as sleep } from 'node:timers/promises';

export interface EventuallyOptions {
  /** How long to go on trying, in milliseconds. */
  timeoutMs?: number;
  /** The pause between two tries, in milliseconds. */
  intervalMs?: number;
}

const stillRunning = Symbol('still running');

/**
 * Runs an assertion until it passes and returns what it returned.
 *
 * Throws the assertion's last own error, with its own stack, when the time is up. An assertion that
 * hangs (a query on a cut connection does) fails too, instead of running into the test's timeout.
 *
 * @example await eventually(async () => expect(await broker.depth('commissions')).toMatchObject({ ready: 0 }));
 */
export async function eventually<T>(
  assertion: () => T | Promise<T>,
  { timeoutMs = 10_000, intervalMs = 25 }: EventuallyOptions = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  let lastError: unknown;
  for (;;) {
    try {
      const result = await within(deadline - performance.now(), assertion);
      if (result !== stillRunning) return result;
      lastError = new Error(`The assertion was still running after ${timeoutMs} ms.`, {
        cause: lastError,
      });
    } catch (error) {
      lastError = error;
    }
    if (performance.now() + intervalMs >= deadline) throw lastError;
    await sleep(intervalMs);
  }
}

/**
 * Checks an assertion again and again for `forMs` milliseconds; throws at its first failure.
 * For "nothing happens": it costs its whole time in every run, so keep it short.
 *
 * @example await holds(async () => expect(await db.query('SELECT 1 FROM commission')).toEqual([]), 500);
 */
export async function holds(
  assertion: () => unknown,
  forMs: number,
  { intervalMs = 25 }: Pick<EventuallyOptions, 'intervalMs'> = {},
): Promise<void> {
  const end = performance.now() + forMs;
  do {
    await assertion();
    await sleep(intervalMs);
  } while (performance.now() < end);
  await assertion();
}

async function within<T>(ms: number, run: () => T | Promise<T>): Promise<T | typeof stillRunning> {
  const timer = new AbortController();
  const timeout = sleep(Math.max(ms, 1), stillRunning, { signal: timer.signal });
  // Both losers of the race end unobserved: the timer by its abort, an assertion that fails too late.
  timeout.catch(() => undefined);
  try {
    return await Promise.race([Promise.resolve().then(run), timeout]);
  } finally {
    timer.abort();
  }
}
