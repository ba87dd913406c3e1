import { integer, oneOf, seeded } from '../../../test/support/random.js';
import { Tally, type Counts } from './tally.js';

const nothing: Counts = {
  processed: 0,
  duplicates: 0,
  keyReuses: 0,
  deadLetters: 0,
  oldestDuplicateSeconds: undefined,
};

describe('Tally', () => {
  it('counts by consumer, and begins anew when it was taken', () => {
    const tally = new Tally();
    tally.count('a', 'processed');
    tally.count('a', 'keyReuses');
    tally.count('b', 'deadLetters');
    tally.duplicate('a', 5);
    tally.duplicate('a', 3);
    expect(Object.fromEntries(tally.take())).toEqual({
      a: { ...nothing, processed: 1, keyReuses: 1, duplicates: 2, oldestDuplicateSeconds: 5 },
      b: { ...nothing, deadLetters: 1 },
    });
    expect(tally.take().size).toBe(0);
  });

  it('loses and doubles nothing, however often what was taken is put back', () => {
    const random = seeded(3);
    const [one, other] = [new Tally(), new Tally()];
    for (let run = 0; run < 1_000; run++) {
      const consumer = oneOf(random, ['a', 'b', 'c']);
      const ageSeconds = integer(random, 0, 1_000);
      for (const tally of [one, other]) {
        tally.count(consumer, 'processed');
        if (ageSeconds < 500) tally.duplicate(consumer, ageSeconds);
      }
      if (ageSeconds % 7 === 0) one.putBack(one.take());
    }
    expect(Object.fromEntries(one.take())).toEqual(Object.fromEntries(other.take()));
  });
});
