/** The event `sale.completed`, without knowing the template. */
export interface Sale {
  saleId: string;
  salespersonId: string;
  productType: string;
  amountCents: number;
}

export const INSERT_COMMISSION = `
  INSERT INTO commission (sale_id, salesperson_id, product_type, amount_cents, rate_bps)
  VALUES ($1, $2, $3, $4, $5)`;

export const ADD_TO_BALANCE = `
  INSERT INTO salesperson_balance (salesperson_id, total_cents) VALUES ($1, $2)
  ON CONFLICT (salesperson_id)
  DO UPDATE SET total_cents = salesperson_balance.total_cents + excluded.total_cents`;

/** Every sale of the bench is of this kind. */
export const PRODUCT_TYPE = 'standard';
const RATE_BPS = 500;

export function commissionCents({ amountCents }: Sale): number {
  return Math.floor((amountCents * RATE_BPS + 5_000) / 10_000);
}

/** The values of INSERT_COMMISSION. */
export function commissionOf(sale: Sale): [string, string, string, number, number] {
  return [sale.saleId, sale.salespersonId, sale.productType, commissionCents(sale), RATE_BPS];
}
