import { hash } from 'node:crypto';
import type { PoolClient } from 'pg';
import { byHand } from './by-hand.js';
import { CLAIM, claimOf } from './claim.js';
import { runContender } from './contender.js';
import {
  ADD_TO_BALANCE,
  commissionCents,
  commissionOf,
  INSERT_COMMISSION,
  type Sale,
} from './effects.js';
import type { Workload } from './run-settings.js';

const effects: Record<Workload, (client: PoolClient, sale: Sale) => Promise<void>> = {
  async insert(client, sale) {
    await client.query({ name: 'commission', text: INSERT_COMMISSION, values: commissionOf(sale) });
  },
  async example(client, sale) {
    await effects.insert(client, sale);
    await client.query({
      name: 'balance',
      text: ADD_TO_BALANCE,
      values: [sale.salespersonId, commissionCents(sale)],
    });
  },
};

/** (b): BEGIN, claim, effect, COMMIT, then the acknowledgement; BEGIN and the claim in one round trip. */
await runContender(
  byHand(async ({ content }, pool, { workload }) => {
    const sale = JSON.parse(content.toString()) as Sale;
    const fingerprint = hash('sha256', content, 'buffer');
    const client = await pool.connect();
    const [, claimed] = await Promise.all([
      client.query('BEGIN ISOLATION LEVEL READ COMMITTED'),
      client.query({
        name: 'claim',
        text: CLAIM,
        values: claimOf(sale.saleId, fingerprint),
      }),
    ]);
    if (claimed.rowCount === 1) {
      await effects[workload](client, sale);
    }
    await client.query('COMMIT');
    client.release();
  }),
);
