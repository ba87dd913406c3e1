import { integer, seeded } from '../../../test/support/random.js';
import { retentionRule, type RetentionTerms } from './retention-rule.js';

const DAY = 86_400_000;

const terms: RetentionTerms = {
  retentionMs: 90 * DAY,
  redeliveryMs: DAY / 4,
  consumerDelayMs: 7 * DAY,
  reprocessingMs: 60 * DAY,
};

describe('retentionRule', () => {
  it('adds the three terms up', () => {
    expect(retentionRule(terms)).toEqual({
      holds: true,
      neededMs: 67.25 * DAY,
      spareMs: 22.75 * DAY,
    });
  });

  it('holds to the millisecond', () => {
    const needed = 67.25 * DAY;
    expect(retentionRule({ ...terms, retentionMs: needed })).toMatchObject({
      holds: true,
      spareMs: 0,
    });
    expect(retentionRule({ ...terms, retentionMs: needed - 1 })).toMatchObject({
      holds: false,
      spareMs: -1,
    });
  });

  describe.each(Array.from({ length: 20 }, (_, seed) => seed))('with random terms %d', (seed) => {
    const random = seeded(seed);
    const century = 36_500 * DAY;
    const some: RetentionTerms = {
      retentionMs: integer(random, 1, century),
      redeliveryMs: integer(random, 0, century / 3),
      consumerDelayMs: integer(random, 1, century / 3),
      reprocessingMs: integer(random, 1, century / 3),
    };
    const TERMS = ['redeliveryMs', 'consumerDelayMs', 'reprocessingMs'] as const;

    it('needs at least each of the three terms, and not more than all', () => {
      const { neededMs } = retentionRule(some);
      for (const term of TERMS) {
        expect(neededMs).toBeGreaterThanOrEqual(some[term]);
        expect(neededMs - some[term]).toBe(retentionRule({ ...some, [term]: 0 }).neededMs);
      }
    });

    it('holds exactly when nothing is missing', () => {
      const { holds, neededMs, spareMs } = retentionRule(some);
      expect(holds).toBe(spareMs >= 0);
      expect(some.retentionMs - spareMs).toBe(neededMs);
      expect(retentionRule({ ...some, retentionMs: neededMs }).holds).toBe(true);
    });

    it('is not helped by a longer term, nor harmed by a longer retention', () => {
      const more = integer(random, 1, DAY);
      for (const term of TERMS) {
        const { spareMs } = retentionRule({ ...some, [term]: some[term] + more });
        expect(spareMs).toBe(retentionRule(some).spareMs - more);
      }
      expect(retentionRule({ ...some, retentionMs: some.retentionMs + more }).spareMs).toBe(
        retentionRule(some).spareMs + more,
      );
    });
  });
});
