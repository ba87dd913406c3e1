import { matches } from '../dispatch/routes.js';
import type { DeadLetter } from './dead-letter.js';
import { DeadLetterFilterError } from './errors.js';

/** Which letters; a letter has to match everything that is given. */
export interface DeadLetterFilter {
  /** One id or several. */
  id?: string | readonly string[] | undefined;
  reason?: string | undefined;
  /** `commissions/sale.completed` */
  consumer?: string | undefined;
  /** A topic: `*` is one word, `#` any number of words. `sale.*` */
  routingKey?: string | undefined;
  /** Of the last failure; inclusive. A letter whose time is unknown does not match. */
  failedSince?: Date | undefined;
  /** Of the last failure; exclusive. */
  failedUntil?: Date | undefined;
}

/** Which letters to change. All of them only when that is said. */
export type DeadLetterSelection = (DeadLetterFilter & { all?: never }) | { all: true };

export type Matches = (letter: DeadLetter) => boolean;

/** @throws DeadLetterFilterError */
export function matcherOf(filter: DeadLetterFilter): Matches {
  const ids = typeof filter.id === 'string' ? [filter.id] : filter.id;
  const wanted = ids === undefined ? undefined : new Set(ids);
  const topic = filter.routingKey?.split('.');
  const since = timeOf('failedSince', filter.failedSince);
  const until = timeOf('failedUntil', filter.failedUntil);
  return (letter) => {
    const failedAt = letter.lastFailedAt === undefined ? NaN : Date.parse(letter.lastFailedAt);
    return (
      (wanted === undefined || wanted.has(letter.id)) &&
      (filter.reason === undefined || letter.reason === filter.reason) &&
      (filter.consumer === undefined || letter.consumer === filter.consumer) &&
      (topic === undefined ||
        (letter.routingKey !== undefined && matches(topic, letter.routingKey.split('.')))) &&
      (since === undefined || failedAt >= since) &&
      (until === undefined || failedAt < until)
    );
  };
}

/**
 * @throws DeadLetterFilterError when nothing is selected: a filter whose every field is undefined is
 *   more likely a mistake than a wish
 */
export function selectorOf(selection: DeadLetterSelection): Matches {
  const { all, ...filter } = selection as DeadLetterFilter & { all?: true };
  const isEmpty = Object.values(filter).every((value) => value === undefined);
  if (all === true && isEmpty) {
    return () => true;
  }
  if (all !== undefined || isEmpty) {
    throw new DeadLetterFilterError(
      'Say which dead letters: by id, reason, consumer, routingKey, failedSince or failedUntil, ' +
        'or by { all: true } and nothing beside it.',
    );
  }
  return matcherOf(filter);
}

function timeOf(name: string, date: Date | undefined): number | undefined {
  const time = date?.getTime();
  if (Number.isNaN(time)) {
    throw new DeadLetterFilterError(`${name} is not a date.`);
  }
  return time;
}
