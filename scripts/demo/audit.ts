import type { Client } from 'pg';
import { RATES_BPS, saleAt, type Sale } from './sales.js';

const CHUNK = 10_000;

/** What the database says, held against what was published. */
export interface Audit {
  /** Commissions. */
  posted: number;
  /** Published sales without a commission. */
  lost: number;
  /** Published sales with more than one. */
  postedTwice: number;
  /** Commissions beyond the first of a sale. */
  surplus: number;
  /** What these cost. */
  surplusCents: number;
  /** Commissions with another amount, rate or person than the sale says, or for no published sale. */
  wrongCommissions: number;
  /** Salespersons whose balance is not the sum of their commissions, each counted once. */
  wrongBalances: number;
}

/**
 * Counts in SQL, against a temporary table of what was published. In one transaction, so that all
 * numbers are of one moment.
 */
export async function audit(client: Client, sales: number): Promise<Audit> {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  try {
    await client.query(EXPECTED);
    for (let from = 0; from < sales; from += CHUNK) {
      const count = Math.min(CHUNK, sales - from);
      await load(
        client,
        Array.from({ length: count }, (_, index) => saleAt(from + index, sales)),
      );
    }
    await client.query('ANALYZE expected');
    const { rows } = await client.query<Audit>(COUNTS);
    return rows[0]!;
  } finally {
    await client.query('ROLLBACK');
  }
}

const EXPECTED = `
  CREATE TEMP TABLE expected (
    sale_id        text PRIMARY KEY,
    salesperson_id text NOT NULL,
    product_type   text NOT NULL,
    rate_bps       integer NOT NULL,
    commission     bigint NOT NULL
  )`;

async function load(client: Client, sales: readonly Sale[]): Promise<void> {
  // Division of integers drops the fraction: adding half of the divisor first rounds half up.
  await client.query(
    `INSERT INTO expected
     SELECT sale_id, salesperson_id, product_type, rate_bps, (cents * rate_bps + 5000) / 10000
       FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::integer[])
            AS published (sale_id, salesperson_id, product_type, cents, rate_bps)`,
    [
      sales.map(({ saleId }) => saleId),
      sales.map(({ salespersonId }) => salespersonId),
      sales.map(({ productType }) => productType),
      sales.map(({ amountCents }) => amountCents),
      sales.map(({ productType }) => RATES_BPS[productType]),
    ],
  );
}

const COUNTS = `
  WITH actual AS (
    SELECT sale_id, count(*) AS times, sum(amount_cents) - min(amount_cents) AS surplus_cents
      FROM commission GROUP BY sale_id
  ), sums AS (
    SELECT salesperson_id, sum(commission) AS total FROM expected GROUP BY salesperson_id
  )
  SELECT
    (SELECT count(*)::int FROM commission) AS posted,
    (SELECT count(*)::int FROM expected LEFT JOIN actual USING (sale_id)
      WHERE times IS NULL) AS lost,
    (SELECT count(*)::int FROM actual WHERE times > 1) AS "postedTwice",
    (SELECT coalesce(sum(times - 1), 0)::int FROM actual) AS surplus,
    (SELECT coalesce(sum(surplus_cents), 0)::float8 FROM actual) AS "surplusCents",
    (SELECT count(*)::int FROM commission c LEFT JOIN expected e USING (sale_id)
      WHERE (c.salesperson_id, c.product_type, c.rate_bps, c.amount_cents)
        IS DISTINCT FROM (e.salesperson_id, e.product_type, e.rate_bps, e.commission)
    ) AS "wrongCommissions",
    (SELECT count(*)::int FROM sums FULL JOIN salesperson_balance USING (salesperson_id)
      WHERE total_cents IS DISTINCT FROM total) AS "wrongBalances"`;
