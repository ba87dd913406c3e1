import { integer, seeded } from '../../test/support/random.js';
import { PermanentError } from '../messaging/index.js';
import { commissionCents, rateBps } from './commission-rates.js';

describe('rateBps', () => {
  it.each([
    ['standard', 500],
    ['premium', 800],
    ['service', 300],
  ])('%s: %d', (productType, rate) => {
    expect(rateBps(productType)).toBe(rate);
  });

  it.each(['', 'Standard', 'standard ', 'luxury', '__proto__', 'constructor'])(
    'refuses "%s" for good',
    (productType) => {
      expect(() => rateBps(productType)).toThrow(PermanentError);
      expect(() => rateBps(productType)).toThrow('known are standard, premium, service');
    },
  );
});

describe('commissionCents', () => {
  it.each([
    [129_900, 500, 6_495n],
    [0, 800, 0n],
    [1, 500, 0n],
    [9, 500, 0n],
    [10, 500, 1n],
    [11, 500, 1n],
    [29, 500, 1n],
    [30, 500, 2n],
    [50, 300, 2n],
    [49, 300, 1n],
    [Number.MAX_SAFE_INTEGER, 800, 720_575_940_379_279n],
  ])('%d at %d bps: %d', (saleCents, rate, commission) => {
    expect(commissionCents(saleCents, rate)).toBe(commission);
  });

  it('is never half a cent or more away, and half a cent goes up', () => {
    const random = seeded(500);
    for (let run = 0; run < 1_000; run++) {
      const saleCents = integer(random, 0, Number.MAX_SAFE_INTEGER - 1);
      const rate = integer(random, 0, 10_000);
      const tooMuch = commissionCents(saleCents, rate) * 10_000n - BigInt(saleCents) * BigInt(rate);
      expect(tooMuch > -5_000n && tooMuch <= 5_000n).toBe(true);
    }
  });
});
