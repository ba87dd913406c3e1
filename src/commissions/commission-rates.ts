import { PermanentError } from '../messaging/index.js';

/** Hundredths of a percent by product type. */
const RATES_BPS: ReadonlyMap<string, number> = new Map([
  ['standard', 500],
  ['premium', 800],
  ['service', 300],
]);

const BPS = 10_000n;

/** @throws PermanentError for a product type that has no rate: asking again will not give it one */
export function rateBps(productType: string): number {
  const rate = RATES_BPS.get(productType);
  if (rate === undefined) {
    throw new PermanentError(
      `product type ${productType} has no commission rate; known are ${[...RATES_BPS.keys()].join(', ')}`,
    );
  }
  return rate;
}

/**
 * The commission for a sale, in whole cents, half a cent up.
 *
 * @example commissionCents(129_900, 500) // 6_495n
 */
export function commissionCents(saleCents: number, rate: number): bigint {
  return (BigInt(saleCents) * BigInt(rate) + BPS / 2n) / BPS;
}
