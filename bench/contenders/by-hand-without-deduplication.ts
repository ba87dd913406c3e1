import { byHand } from './by-hand.js';
import { runContender } from './contender.js';
import { commissionOf, INSERT_COMMISSION, type Sale } from './effects.js';

/** (a): the effect, committed by itself, then the acknowledgement. Insert-only. */
await runContender(
  byHand(async (message, pool) => {
    const sale = JSON.parse(message.content.toString()) as Sale;
    await pool.query({ name: 'effect', text: INSERT_COMMISSION, values: commissionOf(sale) });
  }),
);
