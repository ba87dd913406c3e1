import { readonlyView } from './readonly-view.js';

/**
 * Runs a handler's key or fingerprint function, which may read the payload and nothing else.
 *
 * @throws what the function throws, or TypeError when it is async
 */
export function pick<Picked>(source: (payload: unknown) => Picked, payload: unknown): Picked {
  const picked = source(readonlyView(payload));
  if (typeof (picked as { then?: unknown } | null | undefined)?.then === 'function') {
    // Nobody waits for it, and a rejection that nobody handles would end the process.
    Promise.resolve(picked).catch(() => undefined);
    throw new TypeError('it is async, and must return the value itself');
  }
  return picked;
}

/** What was thrown, as text. Not everything that can be thrown has one. */
export function textOf(error: unknown): string {
  if (error instanceof Error) {
    return String(error);
  }
  return typeof error === 'string' ? error : `no error, but ${typeof error}`;
}
