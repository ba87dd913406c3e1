import type { TakenMessage, TestDatabase } from '../../support/index.js';
import type { Sale } from '../sales.js';

/** Five percent, of amounts that leave no fraction. */
const SALE_PER_COMMISSION = 20;

const nameOf = ({ saleId, amountCents }: Pick<Sale, 'saleId' | 'amountCents'>): string =>
  `${saleId} of ${amountCents}`;

export interface Accounts {
  /** Confirmed to the producer, and neither in the database nor a dead letter. */
  lost: string[];
  /** In the database more than once. */
  twice: string[];
  /** In the database or a dead letter, and never published. */
  invented: string[];
  /** Dead letters by reason. */
  deadLetters: Record<string, number>;
}

/** Holds what was confirmed against what became of it. */
export async function settleAccounts(
  db: TestDatabase,
  confirmed: readonly Sale[],
  letters: readonly TakenMessage[],
): Promise<Accounts> {
  const rows = await db.query<{ sale_id: string; amount_cents: string }>(
    'SELECT sale_id, amount_cents FROM commission',
  );
  const effects = rows.map((row) =>
    nameOf({
      saleId: row.sale_id,
      amountCents: Number(row.amount_cents) * SALE_PER_COMMISSION,
    }),
  );
  const dead = letters.map(({ body }) => nameOf(JSON.parse(body.toString()) as Sale));
  const known = new Set(confirmed.map(nameOf));
  const ended = new Set([...effects, ...dead]);
  const ids = rows.map((row) => row.sale_id);
  const deadLetters: Record<string, number> = {};
  for (const { headers } of letters) {
    const reason = String(headers['x-dead-reason']);
    deadLetters[reason] = (deadLetters[reason] ?? 0) + 1;
  }
  return {
    lost: [...known].filter((name) => !ended.has(name)),
    twice: ids.filter((id, index) => ids.indexOf(id) !== index),
    invented: [...ended].filter((name) => !known.has(name)),
    deadLetters,
  };
}
