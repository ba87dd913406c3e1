import type { Failure } from './failure.js';
import {
  admit,
  admitSuspect,
  decide,
  delayed,
  LEAST_CRASH_LIMIT,
  type Decision,
  type RetrySchedule,
} from './retry-policy.js';

const error = new Error('x');
const failed: Failure = { kind: 'failed', error };
const later: Failure = { kind: 'failed', error, retryAfterMs: 60_000 };
const permanent: Failure = { kind: 'permanent', reason: 'invalid-key', error };
const busy: Failure = { kind: 'busy', error };
const misplaced: Failure = { kind: 'misplaced', queue: 'q', error };
const outage: Failure = { kind: 'outage', error };

const schedule: RetrySchedule = { delaysMs: [1_000, 5_000], attempts: 3 };
const stubborn: RetrySchedule = { delaysMs: [1_000, 5_000], attempts: 9 };
const once: RetrySchedule = { delaysMs: [1_000], attempts: 1 };

const retry = (delayMs: number, attempt: number): Decision => ({
  action: 'retry',
  delayMs,
  attempt,
});
const exhausted = (attempt: number): Decision => ({
  action: 'dead-letter',
  reason: 'attempts-exhausted',
  attempt,
});

describe('decide', () => {
  it.each<[string, Failure, number, RetrySchedule, Decision]>([
    ['first failure', failed, 0, schedule, retry(1_000, 1)],
    ['second failure', failed, 1, schedule, retry(5_000, 2)],
    ['failure of the last attempt', failed, 2, schedule, exhausted(3)],
    ['failure with more attempts than delays', failed, 7, stubborn, retry(5_000, 8)],
    ['the last of those', failed, 8, stubborn, exhausted(9)],
    ['failure where there is one attempt', failed, 0, once, exhausted(1)],
    [
      'failure of a message that claims more attempts than there are',
      failed,
      99,
      schedule,
      exhausted(100),
    ],
    [
      'handler that asks for a delay',
      later,
      0,
      schedule,
      { action: 'retry', delayMs: 60_000, attempt: 1, atLeast: true },
    ],
    ['handler that asks for a delay the last time', later, 2, schedule, exhausted(3)],
    [
      'permanent failure',
      permanent,
      0,
      schedule,
      { action: 'dead-letter', reason: 'invalid-key', attempt: 1 },
    ],
    ['busy key', busy, 0, schedule, retry(1_000, 0)],
    ['busy key, out of attempts', busy, 2, schedule, retry(1_000, 2)],
    ['busy key where there is one attempt', busy, 0, once, retry(1_000, 0)],
    ['message whose handler is elsewhere', misplaced, 0, schedule, { action: 'move', queue: 'q' }],
    ['outage', outage, 0, schedule, { action: 'hand-back' }],
    ['outage, out of attempts', outage, 2, schedule, { action: 'hand-back' }],
  ])('%s', (_, failure, attempt, by, decision) => {
    expect(decide(failure, attempt, by)).toEqual(decision);
  });
});

describe('delayed', () => {
  it('counts no attempt', () => {
    expect(delayed(2, schedule)).toEqual(retry(1_000, 2));
  });
});

describe('admission', () => {
  it.each([
    [0, 'run'],
    [1, 'run'],
    [2, 'isolate'],
    [19, 'isolate'],
  ])('of a message delivered %d times in vain: %s', (deliveries, admission) => {
    expect(admit(deliveries)).toBe(admission);
  });

  it.each([
    [0, 5, 'run'],
    [2, 5, 'run'],
    [3, 5, 'quarantine'],
    [0, LEAST_CRASH_LIMIT, 'run'],
    [1, LEAST_CRASH_LIMIT, 'quarantine'],
  ])('of a suspect delivered %d times alone, of %d crashes: %s', (deliveries, limit, admission) => {
    expect(admitSuspect(deliveries, limit)).toBe(admission);
  });
});
