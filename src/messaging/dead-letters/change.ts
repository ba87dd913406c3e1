import type { ConsumeMessage } from 'amqplib';
import { messageOf } from '../error-text.js';
import { deadLetterOf, type DeadLetter } from './dead-letter.js';
import { DeadLettersInterruptedError, NotReplayableError } from './errors.js';
import type { Matches } from './filter.js';
import type { Walk } from './walk.js';

/** What a change has done so far. */
export interface Progress {
  /** Letters that were looked at, of `total` that were there at the start. */
  seen: number;
  total: number;
  matched: number;
  done: number;
  failedCount: number;
}

export interface ChangeOptions {
  /** So many of those that match, the oldest first. Default: all. */
  limit?: number | undefined;
  /** Only counts what matches, and reports what could not be done. Default: false. */
  dryRun?: boolean | undefined;
  /** Stops before the next letter. What has begun is finished, and the result says what was done. */
  signal?: AbortSignal | undefined;
  /** Told after each letter that was looked at. What it throws ends the change. */
  onProgress?: ((progress: Readonly<Progress>) => void) | undefined;
}

export interface ChangeResult {
  matched: number;
  /** 0 in a dry run. */
  done: number;
  /** The first 1,000 letters that stay although they match, each with why and what to do. */
  failed: readonly { id: string; why: string }[];
  failedCount: number;
  /** Whether `signal` ended it before the last letter. */
  aborted: boolean;
}

/** What is done to a letter, before it is acknowledged. */
export interface Action {
  /** @throws when the letter has to stay, without having changed anything */
  prepare(letter: DeadLetter, message: ConsumeMessage): () => Promise<void>;
}

/** Letters whose copies wait for their confirm at the same time. */
const MOST_AT_ONCE = 100;
const MOST_FAILED = 1_000;
/** Refusals in a row that concern the broker, not a letter: every further one would meet the same. */
const MOST_REFUSALS = 5;

/** One run over the dead letters that removes those that match, after something was done to them. */
export class Change {
  private readonly startedAt = new Date().toISOString();
  private readonly progress: Progress;
  private readonly failed: { id: string; why: string }[] = [];
  private readonly running = new Set<Promise<void>>();
  private refusals = 0;
  private broken: Error | undefined;

  constructor(
    private readonly walk: Walk,
    private readonly matches: Matches,
    private readonly action: Action,
    private readonly options: ChangeOptions,
  ) {
    this.progress = { seen: 0, total: walk.count, matched: 0, done: 0, failedCount: 0 };
  }

  /** @throws DeadLettersInterruptedError when RabbitMQ is away */
  async run(): Promise<ChangeResult> {
    let aborted = false;
    try {
      aborted = await this.walkAll();
    } catch (error) {
      this.broken ??= error as Error;
    }
    await Promise.all(this.running);
    const { matched, done, failedCount } = this.progress;
    if (this.broken !== undefined) {
      const reason = `${messageOf(this.broken)}.`.replace(/\.+$/, '.');
      throw new DeadLettersInterruptedError(done, reason, { cause: this.broken });
    }
    return { matched, done, failed: this.failed, failedCount, aborted };
  }

  /** @returns whether it was aborted */
  private async walkAll(): Promise<boolean> {
    const { limit = Infinity, signal } = this.options;
    if (limit < 1) {
      return false;
    }
    for await (const message of this.walk.letters()) {
      if (signal?.aborted === true || this.broken !== undefined) {
        return signal?.aborted === true;
      }
      this.progress.seen++;
      this.look(message);
      this.options.onProgress?.({ ...this.progress });
      if (this.progress.matched >= limit) {
        return false;
      }
      if (this.running.size >= MOST_AT_ONCE) {
        await Promise.race(this.running);
      }
    }
    return false;
  }

  private look(message: ConsumeMessage): void {
    const letter = deadLetterOf(message);
    if (!this.matches(letter) || this.isOfThisRun(letter)) {
      this.walk.leave();
      return;
    }
    this.progress.matched++;
    try {
      const act = this.action.prepare(letter, message);
      if (this.options.dryRun === true) {
        this.walk.leave();
        return;
      }
      const running = this.act(letter, message, act).finally(() => this.running.delete(running));
      this.running.add(running);
    } catch (error) {
      this.fail(letter, error);
    }
  }

  /** Never rejects: what fails is told in the result. */
  private async act(
    letter: DeadLetter,
    message: ConsumeMessage,
    act: () => Promise<void>,
  ): Promise<void> {
    try {
      await act();
      this.walk.acknowledge(message);
      this.progress.done++;
      this.refusals = 0;
    } catch (error) {
      this.fail(letter, error);
      if (!(error instanceof NotReplayableError) && ++this.refusals >= MOST_REFUSALS) {
        this.broken ??= error as Error;
      }
    }
  }

  private fail({ id }: DeadLetter, error: unknown): void {
    this.progress.failedCount++;
    if (this.failed.length < MOST_FAILED) {
      this.failed.push({ id, why: messageOf(error) });
    }
    this.walk.leave();
  }

  /** A high priority can bring a letter that has failed again to where this walk has not been yet. */
  private isOfThisRun({ history }: DeadLetter): boolean {
    const replayedAt = history.at(-1)?.replayedAt;
    return replayedAt !== undefined && replayedAt >= this.startedAt;
  }
}
