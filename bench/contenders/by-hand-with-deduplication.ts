import { hash } from 'node:crypto';
import type { PoolClient } from 'pg';
import { byHand } from './by-hand.js';
import { runContender } from './contender.js';
import {
  ADD_TO_BALANCE,
  commissionCents,
  commissionOf,
  INSERT_COMMISSION,
  type Sale,
} from './effects.js';
import type { Workload } from './run-settings.js';

const CONSUMER = 'bench/sale';
const RETENTION_MS = 90 * 86_400_000;

/** Stores what the template stores. */
const CLAIM = `
  INSERT INTO processed_message (consumer, key, fingerprint, expires_at)
  VALUES ($1, $2, $3, now() + $4::double precision * interval '1 millisecond')
  ON CONFLICT (consumer, key) DO NOTHING`;

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
      client.query('BEGIN'),
      client.query({
        name: 'claim',
        text: CLAIM,
        values: [CONSUMER, sale.saleId, fingerprint, RETENTION_MS],
      }),
    ]);
    if (claimed.rowCount === 1) {
      await effects[workload](client, sale);
    }
    await client.query('COMMIT');
    client.release();
  }),
);
