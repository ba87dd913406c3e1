import { saleCompletedSchema } from './sale-completed.js';

const sale = {
  saleId: 'S-1001',
  salespersonId: 'P-7',
  productType: 'standard',
  amountCents: 129_900,
  currency: 'EUR',
  completedAt: '2026-05-03T10:15:00Z',
};

const takes = (changes: object): boolean =>
  saleCompletedSchema.safeParse({ ...sale, ...changes }).success;

describe('saleCompletedSchema', () => {
  it('takes the event as the shop publishes it', () => {
    expect(saleCompletedSchema.parse(sale)).toEqual(sale);
  });

  it.each<[string, object]>([
    ['fields that it does not know', { campaign: 'spring' }],
    ['a sale that costs nothing', { amountCents: 0 }],
    ['the largest safe amount', { amountCents: Number.MAX_SAFE_INTEGER }],
    ['a time with an offset', { completedAt: '2026-05-03T12:15:00.123+02:00' }],
    ['a product type without a rate, which the handler refuses', { productType: 'luxury' }],
  ])('takes %s', (_, changes) => {
    expect(takes(changes)).toBe(true);
  });

  it.each<[string, object]>([
    ['no sale id', { saleId: undefined }],
    ['an empty sale id', { saleId: '' }],
    ['a sale id that is a number', { saleId: 1001 }],
    ['no salesperson', { salespersonId: '' }],
    ['no product type', { productType: null }],
    ['a fraction of a cent', { amountCents: 0.5 }],
    ['a negative amount', { amountCents: -1 }],
    ['an amount past 2^53', { amountCents: 2 ** 53 }],
    ['an amount that is a text', { amountCents: '129900' }],
    ['a currency of two letters', { currency: 'EU' }],
    ['a time without a zone', { completedAt: '2026-05-03T10:15:00' }],
    ['a day that is none', { completedAt: '2026-02-30T10:15:00Z' }],
    ['a date alone', { completedAt: '2026-05-03' }],
  ])('refuses %s', (_, changes) => {
    expect(takes(changes)).toBe(false);
  });

  it.each([null, undefined, 'sale', [], 7])('refuses %j', (value) => {
    expect(saleCompletedSchema.safeParse(value).success).toBe(false);
  });
});
