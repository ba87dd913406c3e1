import type { MessageProperties, Options } from 'amqplib';
import { isCopyable } from '../settle/copyable.js';
import { copyProperties, HEADER } from '../settle/headers.js';
import type { DeadLetter } from './dead-letter.js';
import { NotReplayableError } from './errors.js';
import { withHistory } from './history.js';

/** A letter as it is sent back. */
export interface ReplayCopy {
  queue: string;
  body: Buffer;
  options: Options.Publish;
}

/** Of the failure that the replay ends; its history tells them. */
const OF_THIS_FAILURE = new Set<string>([
  HEADER.attempt,
  HEADER.consumer,
  HEADER.originalQueue,
  HEADER.errorName,
  HEADER.errorMessage,
  HEADER.firstFailedAt,
  HEADER.lastFailedAt,
  HEADER.history,
]);

/**
 * The letter with a fresh number of attempts, and what has happened in its history.
 *
 * @param to the queue, when not the original one
 * @throws NotReplayableError
 */
export function replayCopy(
  letter: DeadLetter,
  properties: MessageProperties,
  to: string | undefined,
): ReplayCopy {
  const queue = to ?? letter.queue;
  if (queue === undefined) {
    throw new NotReplayableError(
      'It does not say which queue it came from: replay it to one with the option "to".',
    );
  }
  const options = copyProperties(properties, {});
  const headers = withHistory(freshHeaders(letter, options), [
    ...letter.history,
    pastFailureOf(letter),
  ]);
  if (!isCopyable({ ...properties, headers })) {
    throw new NotReplayableError(
      'Its properties cannot be written again (headers over 24 KB, or values that this client cannot ' +
        'send): publish its body anew from its source, then discard it.',
    );
  }
  return { queue, body: letter.body, options: { ...options, headers } };
}

function freshHeaders(letter: DeadLetter, { headers }: Options.Publish): Record<string, unknown> {
  const kept = Object.entries((headers ?? {}) as Record<string, unknown>).filter(
    ([name]) => !OF_THIS_FAILURE.has(name),
  );
  return {
    ...Object.fromEntries(kept),
    // By this key it is routed to its handler: the copy itself comes through the default exchange.
    ...(letter.exchange === undefined ? {} : { [HEADER.originalExchange]: letter.exchange }),
    ...(letter.routingKey === undefined ? {} : { [HEADER.originalRoutingKey]: letter.routingKey }),
  };
}

function pastFailureOf(letter: DeadLetter): DeadLetter['history'][number] {
  const { reason, errorName, errorMessage, attempts, consumer, firstFailedAt, lastFailedAt } =
    letter;
  return {
    reason,
    ...(errorName === undefined ? {} : { errorName }),
    ...(errorMessage === undefined ? {} : { errorMessage }),
    attempts,
    ...(consumer === undefined ? {} : { consumer }),
    ...(firstFailedAt === undefined ? {} : { firstFailedAt }),
    ...(lastFailedAt === undefined ? {} : { lastFailedAt }),
    replayedAt: new Date().toISOString(),
  };
}
