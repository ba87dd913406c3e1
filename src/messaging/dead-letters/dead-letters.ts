import { Inject, Injectable } from '@nestjs/common';
import { ConfirmedPublisher } from '../publish/confirmed-publisher.js';
import { UnroutableMessageError } from '../errors.js';
import { MESSAGING_OPTIONS, type MessagingOptions } from '../messaging.options.js';
import { DEFAULT_EXCHANGE, deadLetterQueue } from '../consume/topology.js';
import { Change, type Action, type ChangeOptions, type ChangeResult } from './change.js';
import { deadLetterOf, type DeadLetter } from './dead-letter.js';
import {
  matcherOf,
  selectorOf,
  type DeadLetterFilter,
  type DeadLetterSelection,
} from './filter.js';
import { NotReplayableError } from './errors.js';
import { replayCopy, type ReplayCopy } from './replay-copy.js';
import { Walk } from './walk.js';

/** How many letters a list has, unless it is told: each is held in memory with its body. */
const DEFAULT_LIMIT = 100;

export interface ReplayOptions extends ChangeOptions {
  /** The queue to send them to. Default: for each letter, the one that it came from. */
  to?: string | undefined;
}

/**
 * Looks at the service's dead letters, sends them back, or discards them. The queue itself is the only record:
 * nothing is kept beside it, so whatever ends an operation half-way, the next one goes on from there.
 *
 * One operation at a time, over all processes; another one throws `DeadLettersBusyError`. Each takes the
 * letters that are there when it begins.
 *
 * @example
 * await deadLetters.countByReason(); // Map { 'attempts-exhausted' => 40, 'invalid-key' => 2 }
 * // The handler has been mended:
 * const { done, failed } = await deadLetters.replay({ consumer: 'commissions/sale.completed' });
 * await deadLetters.discard({ reason: 'invalid-key', failedUntil: new Date('2026-12-01') });
 */
@Injectable()
export class DeadLetters {
  constructor(
    @Inject(MESSAGING_OPTIONS) private readonly options: Pick<MessagingOptions, 'url' | 'queue'>,
    private readonly publisher: ConfirmedPublisher,
  ) {}

  /**
   * The letters that match, oldest first. They stay where they are.
   *
   * @param options limit: letters, 100 unless set
   * @throws DeadLettersBusyError, NoDeadLetterQueueError, DeadLetterFilterError
   */
  async list(
    filter: DeadLetterFilter = {},
    { limit = DEFAULT_LIMIT }: { limit?: number } = {},
  ): Promise<DeadLetter[]> {
    const found: DeadLetter[] = [];
    await this.look(filter, (letter) => found.length < limit && found.push(letter) < limit);
    return found;
  }

  /**
   * How many letters there are of each reason, the most frequent first.
   *
   * @throws DeadLettersBusyError, NoDeadLetterQueueError, DeadLetterFilterError
   */
  async countByReason(filter: DeadLetterFilter = {}): Promise<Map<string, number>> {
    const counts = new Map<string, number>();
    await this.look(filter, ({ reason }) => {
      counts.set(reason, (counts.get(reason) ?? 0) + 1);
      return true;
    });
    return new Map([...counts].toSorted(([, a], [, b]) => b - a));
  }

  /**
   * Sends letters back to the queues that they came from, with a fresh number of attempts and this failure
   * in their history. A letter is removed when the broker has confirmed its copy: a crash between the two
   * leaves both, and the business key makes one of them a duplicate.
   *
   * @throws DeadLettersInterruptedError when RabbitMQ goes away; it says how many were sent
   * @throws DeadLettersBusyError, NoDeadLetterQueueError, DeadLetterFilterError; nothing was changed then
   */
  replay(selection: DeadLetterSelection, options: ReplayOptions = {}): Promise<ChangeResult> {
    return this.change(selection, options, {
      prepare: (letter, { properties }) => {
        const copy = replayCopy(letter, properties, options.to);
        return () => this.send(copy);
      },
    });
  }

  /**
   * Removes letters for good.
   *
   * @throws the same as `replay`
   */
  discard(selection: DeadLetterSelection, options: ChangeOptions = {}): Promise<ChangeResult> {
    return this.change(selection, options, { prepare: () => () => Promise.resolve() });
  }

  private async change(
    selection: DeadLetterSelection,
    options: ChangeOptions,
    action: Action,
  ): Promise<ChangeResult> {
    const matches = selectorOf(selection);
    return this.onWalk((walk) => new Change(walk, matches, action, options).run());
  }

  /** Shows every letter that matches, until told that it is enough. */
  private async look(
    filter: DeadLetterFilter,
    show: (letter: DeadLetter) => boolean,
  ): Promise<void> {
    const matches = matcherOf(filter);
    await this.onWalk(async (walk) => {
      for await (const message of walk.letters()) {
        walk.leave();
        const letter = deadLetterOf(message);
        if (matches(letter) && !show(letter)) {
          return;
        }
      }
    });
  }

  private async send({ queue, body, options }: ReplayCopy): Promise<void> {
    try {
      await this.publisher.publish(DEFAULT_EXCHANGE, queue, body, options);
    } catch (error) {
      throw error instanceof UnroutableMessageError
        ? new NotReplayableError(
            `There is no queue ${queue} any more: start the service that consumes it, or replay to ` +
              'another one with the option "to".',
          )
        : error;
    }
  }

  private async onWalk<T>(use: (walk: Walk) => Promise<T>): Promise<T> {
    const walk = await Walk.open(this.options.url, deadLetterQueue(this.options.queue));
    try {
      return await use(walk);
    } finally {
      await walk.close();
    }
  }
}
