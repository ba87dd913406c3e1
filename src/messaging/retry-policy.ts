import type { Failure } from './failure.js';

/** The message goes on as a copy, which carries the number of failed attempts so far. */
export type CopyDecision =
  | { action: 'retry'; delayMs: number; attempt: number }
  | { action: 'dead-letter'; reason: string; attempt: number };

export type Decision = CopyDecision | { action: 'hand-back' };

/**
 * What happens to a message that failed. A pure function of the failure, the attempts so far and the
 * schedule.
 *
 * @param attempt how often the message has failed before
 * @param delaysMs the schedule: after the n-th failure, the n-th delay; after the last, dead letter
 */
export function decide(failure: Failure, attempt: number, delaysMs: readonly number[]): Decision {
  switch (failure.kind) {
    case 'permanent':
      return { action: 'dead-letter', reason: failure.reason, attempt: attempt + 1 };
    case 'outage':
      return { action: 'hand-back' };
    case 'busy':
      return delaysMs[0] === undefined
        ? { action: 'hand-back' }
        : { action: 'retry', delayMs: delaysMs[0], attempt };
    case 'failed': {
      const delayMs = delaysMs[attempt];
      return delayMs === undefined
        ? { action: 'dead-letter', reason: 'attempts-exhausted', attempt: attempt + 1 }
        : { action: 'retry', delayMs, attempt: attempt + 1 };
    }
  }
}
