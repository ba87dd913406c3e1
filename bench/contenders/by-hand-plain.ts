import { hash } from 'node:crypto';
import { byHand } from './by-hand.js';
import { runContender } from './contender.js';
import {
  ADD_TO_BALANCE,
  commissionCents,
  commissionOf,
  INSERT_COMMISSION,
  type Sale,
} from './effects.js';
import { CLAIM, claimOf } from './claim.js';

/** (p): the statements of (b) as they are usually written: each awaited, none prepared. */
await runContender(
  byHand(async ({ content }, pool, { workload }) => {
    const sale = JSON.parse(content.toString()) as Sale;
    const client = await pool.connect();
    await client.query('BEGIN');
    const claimed = await client.query(
      CLAIM,
      claimOf(sale.saleId, hash('sha256', content, 'buffer')),
    );
    if (claimed.rowCount === 1) {
      await client.query(INSERT_COMMISSION, commissionOf(sale));
      if (workload === 'example') {
        await client.query(ADD_TO_BALANCE, [sale.salespersonId, commissionCents(sale)]);
      }
    }
    await client.query('COMMIT');
    client.release();
  }),
);
