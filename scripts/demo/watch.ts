import { setTimeout as sleep } from 'node:timers/promises';
import { reasonOf } from '../services/errors.js';
import { deadLetterQueue, sideQueues } from './broker.js';
import { DemoError } from './errors.js';
import type { Stage } from './stage.js';

const STALL_MS = 60_000;
const DIAGNOSIS_MS = 3_000;
const POLL_MS = 50;
/** Of the time, at most so much goes into looking, which gets slower the more there is to count. */
const POLL_SHARE = 0.1;

/** Where everything is at one moment. */
export interface Snapshot {
  /** Messages that RabbitMQ has confirmed. */
  confirmed: number;
  /** Of these, in the queue or in a retry queue. */
  waiting: number;
  deadLetters: number;
  /** Commissions in the database. */
  posted: number;
}

export interface WatchOptions extends Stage {
  /** The naive consumer has one queue only. */
  naive: boolean;
  signal: AbortSignal;
  onSnapshot: (snapshot: Snapshot) => void;
}

/** Looks at the broker and the database while messages move, and notices when they do not. */
export class Watch {
  private readonly waitingQueues: string[];
  private readonly deadLetterQueues: string[];

  constructor(private readonly options: WatchOptions) {
    const { naive, place } = options;
    this.waitingQueues = [place.queue, ...(naive ? [] : sideQueues(place.queue))];
    this.deadLetterQueues = naive ? [] : [deadLetterQueue(place.queue)];
  }

  /**
   * Waits until the condition holds, and has found nothing changed in `unchanged` further looks. Tells
   * when the last change was seen (performance.now). Throws when a consumer ends by itself, or when
   * nothing has changed for a minute.
   */
  async until(condition: (snapshot: Snapshot) => boolean, unchanged = 0): Promise<number> {
    const { consumers, onSnapshot, signal } = this.options;
    let last: { seen: string; at: number; looks: number } | undefined;
    for (;;) {
      consumers.check();
      const at = performance.now();
      const snapshot = await within(STALL_MS, this.look()).catch((error: unknown) =>
        this.stalled(error),
      );
      onSnapshot(snapshot);
      const seen = JSON.stringify(snapshot);
      last = last?.seen === seen ? { ...last, looks: last.looks + 1 } : { seen, at, looks: 0 };
      if (condition(snapshot) && last.looks >= unchanged) return last.at;
      if (at - last.at > STALL_MS) await this.stalled();
      const tookMs = performance.now() - at;
      await sleep(Math.max(POLL_MS, tookMs / POLL_SHARE), undefined, { signal });
    }
  }

  async look(): Promise<Snapshot> {
    const { shop, database } = this.options;
    const { confirmed } = shop; // first, so that what is waiting is never more than what was sent
    const waiting = await this.ready(this.waitingQueues);
    const deadLetters = await this.ready(this.deadLetterQueues);
    return { confirmed, waiting, deadLetters, posted: await database.commissions() };
  }

  /** Says where everything got stuck. */
  private async stalled(cause?: unknown): Promise<never> {
    const { shop, consumers, database } = this.options;
    const lines = [...this.waitingQueues, ...this.deadLetterQueues].map((queue) =>
      describe(`queue ${queue}`, async () => {
        const depth = await shop.depth(queue);
        return `${depth.ready} messages, ${depth.consumers} consumers`;
      }),
    );
    lines.push(describe('commissions', async () => String(await database.commissions())));
    throw new DemoError(
      [
        cause === undefined
          ? `Nothing has moved for ${STALL_MS / 1000} seconds.`
          : `The demo cannot see how far it is: ${reasonOf(cause)}`,
        `  confirmed by RabbitMQ: ${shop.confirmed} messages`,
        ...(await Promise.all(lines)),
        consumers.lastWords(),
      ].join('\n'),
      { cause },
    );
  }

  private async ready(queues: readonly string[]): Promise<number> {
    let sum = 0;
    for (const queue of queues) sum += (await this.options.shop.depth(queue)).ready;
    return sum;
  }
}

async function describe(what: string, ask: () => Promise<string>): Promise<string> {
  const answer = await within(DIAGNOSIS_MS, ask()).catch(reasonOf);
  return `  ${what}: ${answer}`;
}

/** A server that hangs answers neither yes nor no. */
async function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  const timer = new AbortController();
  const late = sleep(ms, undefined, { signal: timer.signal }).then(() => {
    throw new DemoError(`no answer within ${ms / 1000} seconds`);
  });
  late.catch(() => undefined); // aborted, or too late itself
  try {
    return await Promise.race([answer, late]);
  } finally {
    timer.abort();
  }
}
