import type { Failure } from './failure.js';

/** When a failed message is tried again, and how often. */
export interface RetrySchedule {
  /** After the n-th failure the n-th delay, in milliseconds; the last one repeats. Not empty. */
  delaysMs: readonly number[];
  /** Runs in all, the first one included. */
  attempts: number;
}

/** Run again after a delay. Carries the number of failed attempts so far. */
export interface RetryDecision {
  action: 'retry';
  delayMs: number;
  attempt: number;
  /** The delay was asked for: longer is fine, shorter is not. */
  atLeast?: true;
}

export type Decision =
  | RetryDecision
  | { action: 'dead-letter'; reason: string; attempt: number }
  | { action: 'move'; queue: string }
  | { action: 'hand-back' };

/**
 * What happens to a message that failed. A pure function of the failure, the attempts so far and the
 * schedule.
 *
 * @param attempt how often the message has failed before
 */
export function decide(failure: Failure, attempt: number, schedule: RetrySchedule): Decision {
  switch (failure.kind) {
    case 'permanent':
      return { action: 'dead-letter', reason: failure.reason, attempt: attempt + 1 };
    case 'misplaced':
      return { action: 'move', queue: failure.queue };
    case 'outage':
      return { action: 'hand-back' };
    case 'busy':
      return delayed(attempt, schedule);
    case 'failed':
      return retried(failure.retryAfterMs, attempt, schedule);
  }
}

function retried(
  retryAfterMs: number | undefined,
  attempt: number,
  { delaysMs, attempts }: RetrySchedule,
): Decision {
  const failures = attempt + 1;
  if (failures >= attempts) {
    return { action: 'dead-letter', reason: 'attempts-exhausted', attempt: failures };
  }
  return retryAfterMs === undefined
    ? { action: 'retry', delayMs: delaysMs[attempt] ?? delaysMs.at(-1)!, attempt: failures }
    : { action: 'retry', delayMs: retryAfterMs, attempt: failures, atLeast: true };
}

/** Comes back as a new copy, after the first delay, and no attempt is counted. */
export function delayed(attempt: number, { delaysMs }: RetrySchedule): RetryDecision {
  return { action: 'retry', delayMs: delaysMs[0]!, attempt };
}

/** Deliveries in vain after which a message is suspected of ending the process. */
const SUSPECT_AFTER = 2;

/** The least crash limit: a message is tried alone at least once. */
export const LEAST_CRASH_LIMIT = SUSPECT_AFTER + 1;

/** Whether a message runs where it was delivered, alone among its like, or not again. */
export type Admission = 'run' | 'isolate' | 'quarantine';

/**
 * A message that ends the process takes the whole prefetch window with it, and the broker counts a
 * delivery against each message in there. So a message with such a history goes on to a queue that is
 * consumed one by one: what ends the process there has done it alone.
 *
 * @param deliveries how often the broker has delivered this copy before, in vain
 */
export function admit(deliveries: number): Admission {
  return deliveries >= SUSPECT_AFTER ? 'isolate' : 'run';
}

/** The same for a suspect, which is delivered alone. */
export function admitSuspect(deliveries: number, crashLimit: number): Admission {
  return SUSPECT_AFTER + deliveries >= crashLimit ? 'quarantine' : 'run';
}
