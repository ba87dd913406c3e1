import type { Failure } from './failure.js';
import { decide, type Decision } from './retry-policy.js';
import { DELIVERY_LIMIT } from './topology.js';

const error = new Error('x');
const failed: Failure = { kind: 'failed', error };
const permanent: Failure = { kind: 'permanent', reason: 'invalid-key', error };
const busy: Failure = { kind: 'busy', error };
const outage: Failure = { kind: 'outage', error };
const delays = [1_000, 5_000];

describe('decide', () => {
  it.each<[string, Failure, number, number[], Decision]>([
    ['first failure', failed, 0, delays, { action: 'retry', delayMs: 1_000, attempt: 1 }],
    ['second failure', failed, 1, delays, { action: 'retry', delayMs: 5_000, attempt: 2 }],
    [
      'failure after the last delay',
      failed,
      2,
      delays,
      { action: 'dead-letter', reason: 'attempts-exhausted', attempt: 3 },
    ],
    [
      'failure of a message that claims more attempts than there are',
      failed,
      99,
      delays,
      { action: 'dead-letter', reason: 'attempts-exhausted', attempt: 100 },
    ],
    [
      'failure without a schedule',
      failed,
      0,
      [],
      { action: 'dead-letter', reason: 'attempts-exhausted', attempt: 1 },
    ],
    [
      'permanent failure',
      permanent,
      0,
      delays,
      { action: 'dead-letter', reason: 'invalid-key', attempt: 1 },
    ],
    ['busy key', busy, 0, delays, { action: 'retry', delayMs: 1_000, attempt: 0 }],
    ['busy key, out of attempts', busy, 2, delays, { action: 'retry', delayMs: 1_000, attempt: 2 }],
    ['busy key without a schedule', busy, 0, [], { action: 'hand-back' }],
    ['outage', outage, 0, delays, { action: 'hand-back' }],
    ['outage, out of attempts', outage, 2, delays, { action: 'hand-back' }],
  ])('%s', (_, failure, attempt, schedule, decision) => {
    expect(decide(failure, attempt, schedule)).toEqual(decision);
  });

  it('lets no outage use up the deliveries that the broker grants a message', () => {
    const half = DELIVERY_LIMIT / 2;
    const copy: Decision = { action: 'retry', delayMs: 1_000, attempt: 1 };
    expect(decide(outage, 1, delays, half - 1)).toEqual({ action: 'hand-back' });
    expect(decide(outage, 1, delays, half)).toEqual(copy);
    expect(decide(outage, 1, delays, DELIVERY_LIMIT)).toEqual(copy);
    expect(decide(outage, 1, [], half)).toEqual({ action: 'hand-back' });
  });

  it('decides about every other failure whatever the number of deliveries', () => {
    for (const failure of [failed, permanent, busy]) {
      expect(decide(failure, 0, delays, DELIVERY_LIMIT)).toEqual(decide(failure, 0, delays));
    }
  });
});
