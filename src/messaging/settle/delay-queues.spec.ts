import { integer, listOf, seeded } from '../../../test/support/random.js';
import { DelayQueues } from './delay-queues.js';

const randoms = [0, 0.33, 0.34, 0.5, 0.66, 0.67, 0.999_999];

describe('DelayQueues', () => {
  it('has three queues for a delay, and one without jitter', () => {
    expect(new DelayQueues([1_000, 5_000], 0.2).delaysMs).toEqual([
      800, 1_000, 1_200, 4_000, 5_000, 6_000,
    ]);
    expect(new DelayQueues([5_000, 1_000, 5_000], 0).delaysMs).toEqual([1_000, 5_000]);
  });

  it('chooses each of the queues near a delay, by chance', () => {
    const delays = new DelayQueues([1_000, 5_000], 0.2);
    expect(new Set(randoms.map((random) => delays.near(1_000, random)))).toEqual(
      new Set([800, 1_000, 1_200]),
    );
    expect(new DelayQueues([1_000], 0).near(1_000, 0.99)).toBe(1_000);
  });

  it('is never shorter than what a handler asks for, unless there is nothing longer', () => {
    const delays = new DelayQueues([1_000, 30_000], 0.2);
    for (const random of randoms) {
      expect([1_000, 1_200]).toContain(delays.atLeast(1_000, random));
      expect(delays.atLeast(2_000, random)).toBe(24_000);
      expect(delays.atLeast(0, random)).toBe(800);
      expect(delays.atLeast(3_600_000, random)).toBe(36_000);
    }
  });

  it('chooses among its queues and no others, and near the wanted delay, for random delays', () => {
    const random = seeded(12);
    for (let run = 0; run < 500; run++) {
      const jitter = integer(random, 0, 50) / 100;
      const wanted = [
        integer(random, 1, 86_400_000),
        ...listOf(random, 5, () => integer(random, 1, 1_000)),
      ];
      const delays = new DelayQueues(wanted, jitter);
      for (const delayMs of wanted) {
        const near = delays.near(delayMs, random());
        expect(delays.delaysMs).toContain(near);
        expect(Math.abs(near - delayMs)).toBeLessThanOrEqual(Math.ceil(delayMs * jitter));
        expect(delays.delaysMs).toContain(delays.atLeast(integer(random, 0, 1_000), random()));
      }
      expect(Math.min(...delays.delaysMs)).toBeGreaterThan(0);
    }
  });
});
