import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from './errors.js';
import type { Log, Server, Urls } from './server.js';

const TELL_EVERY_MS = 10_000;

export const answers = (server: Server, urls: Urls | undefined): Promise<boolean> =>
  urls === undefined ? Promise.resolve(false) : server.check(urls).then(yes, no);

const yes = (): boolean => true;
const no = (): boolean => false;

/** Waits for an answer and returns nothing, or the last failure when there is no more hope. */
export async function untilItAnswers(
  server: Server,
  urls: Urls,
  options: { timeoutMs: number; hopeless?: () => boolean; log: Log; waitingFor: string },
): Promise<string | undefined> {
  const began = Date.now();
  let tell = began + TELL_EVERY_MS;
  for (;;) {
    // Asked before the check, so that a server which ends in between has still been tried once more.
    const last = options.hopeless?.() || Date.now() - began > options.timeoutMs;
    const failure = await server.check(urls).then(() => undefined, reasonOf);
    if (failure === undefined || last) return failure;
    if (Date.now() > tell) {
      options.log(`${server.title}: ${options.waitingFor}`);
      tell += TELL_EVERY_MS;
    }
    await sleep(100);
  }
}
