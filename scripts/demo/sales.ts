/** The event `sale.completed`, as a shop publishes it. */
export interface Sale {
  saleId: string;
  salespersonId: string;
  productType: ProductType;
  amountCents: number;
  currency: string;
  completedAt: string;
}

export type ProductType = 'standard' | 'premium' | 'service';

/**
 * Hundredths of a percent. Written down here once more, and not imported from the service: the demo
 * checks the service, and a rate that both took from one place would always agree.
 */
export const RATES_BPS: Readonly<Record<ProductType, number>> = {
  standard: 500,
  premium: 800,
  service: 300,
};

const SALESPERSONS = 100;
const FIRST_NUMBER = 1_001;
const MIN_CENTS = 99;
const MAX_CENTS = 499_999;
const MONTH_START = Date.UTC(2026, 4, 1);
const MONTH_MS = 31 * 86_400_000;

/** Sale number `index` of a month of `count` sales. The same arguments give the same sale. */
export function saleAt(index: number, count: number): Sale {
  const random = randomFrom(index);
  return {
    saleId: `S-${FIRST_NUMBER + index}`,
    salespersonId: `P-${1 + Math.floor(random() * SALESPERSONS)}`,
    productType: productType(random()),
    amountCents: MIN_CENTS + Math.floor(random() * (MAX_CENTS - MIN_CENTS + 1)),
    currency: 'EUR',
    completedAt: new Date(MONTH_START + Math.floor((index / count) * MONTH_MS)).toISOString(),
  };
}

function productType(random: number): ProductType {
  if (random < 0.6) return 'standard';
  return random < 0.85 ? 'premium' : 'service';
}

/** Mulberry32: small, and good enough to spread sales over people and prices. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
