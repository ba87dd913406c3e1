import type { Failure } from './failure.js';
import { DELIVERY_LIMIT } from './topology.js';

/** The message goes on as a copy, which carries the number of failed attempts so far. */
export type CopyDecision =
  | { action: 'retry'; delayMs: number; attempt: number }
  | { action: 'dead-letter'; reason: string; attempt: number };

export type Decision = CopyDecision | { action: 'hand-back' };

/**
 * The broker counts what is handed back and gives a message up at the queue's delivery limit. Well
 * before that the message goes on as a copy, whose count begins anew: an outage burns no message.
 */
const MAX_HAND_BACKS = DELIVERY_LIMIT / 2;

/**
 * What happens to a message that failed. A pure function of the failure, the attempts so far and the
 * schedule.
 *
 * @param attempt how often the message has failed before
 * @param delaysMs the schedule: after the n-th failure, the n-th delay; after the last, dead letter
 * @param deliveries how often the broker has delivered this copy before
 */
export function decide(
  failure: Failure,
  attempt: number,
  delaysMs: readonly number[],
  deliveries = 0,
): Decision {
  switch (failure.kind) {
    case 'permanent':
      return { action: 'dead-letter', reason: failure.reason, attempt: attempt + 1 };
    case 'outage':
      return deliveries < MAX_HAND_BACKS ? { action: 'hand-back' } : delay(attempt, delaysMs);
    case 'busy':
      return delay(attempt, delaysMs);
    case 'failed': {
      const delayMs = delaysMs[attempt];
      return delayMs === undefined
        ? { action: 'dead-letter', reason: 'attempts-exhausted', attempt: attempt + 1 }
        : { action: 'retry', delayMs, attempt: attempt + 1 };
    }
  }
}

/** Comes back as a new copy, and no attempt is counted. */
function delay(attempt: number, [delayMs]: readonly number[]): Decision {
  return delayMs === undefined ? { action: 'hand-back' } : { action: 'retry', delayMs, attempt };
}
