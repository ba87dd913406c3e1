import {
  isLockTimeout,
  type TransactionOptions,
  type TransactionQueryRunner,
} from '../database/index.js';
import { KeyBusyError } from './errors.js';

/** A key to be claimed, and what is kept with it. */
export interface Claim {
  consumer: string;
  key: string;
  fingerprint: Buffer | null;
  retentionMs: number;
  /** Of the transaction that claims. */
  limits: Pick<TransactionOptions, 'lockTimeoutMs' | 'timeoutMs'>;
}

/** What is known of a key that somebody has claimed before. */
export interface ProcessedMessage {
  fingerprint: Buffer | null;
  /** The reply's JSON; null when there was none. A reply of null is the text `null`. */
  reply: string | null;
  processed_at: Date;
  /** By the database's clock. */
  age_seconds: number;
}

/**
 * The transaction's limits are set on the way, before the row can wait for another one: as statements
 * of their own they would cost as much again. They end with the transaction, also behind PgBouncer.
 */
const INSERT = `
  INSERT INTO processed_message (consumer, key, fingerprint, expires_at)
  SELECT $1, $2, $3, now() + $4::double precision * interval '1 millisecond'
  FROM (SELECT set_config('lock_timeout', $5, true), set_config('statement_timeout', $6, true)) limits
  ON CONFLICT (consumer, key) DO NOTHING`;

const SELECT = `
  SELECT fingerprint, reply::text AS reply, processed_at,
         greatest(extract(epoch FROM clock_timestamp() - processed_at), 0)::double precision AS age_seconds
  FROM processed_message WHERE consumer = $1 AND key = $2`;

const SET_REPLY = `UPDATE processed_message SET reply = $3 WHERE consumer = $1 AND key = $2`;

/**
 * Claims the key in the handler's transaction. A concurrent claim of the same key makes the statement
 * wait: it wins when the other rolls back, and finds its row when the other commits. The unique
 * constraint decides, and is never violated, because that would abort the transaction.
 *
 * @returns undefined when the key is now ours, else what is stored with it
 * @throws KeyBusyError when the other claim is still undecided after the lock timeout
 */
export async function claim(
  transaction: TransactionQueryRunner,
  { consumer, key, fingerprint, retentionMs, limits }: Claim,
): Promise<ProcessedMessage | undefined> {
  const { lockTimeoutMs, timeoutMs } = limits;
  try {
    for (;;) {
      const { rowCount } = await transaction.execute({
        name: 'claim',
        text: INSERT,
        values: [consumer, key, fingerprint, retentionMs, `${lockTimeoutMs}`, `${timeoutMs}`],
      });
      if (rowCount === 1) {
        return undefined;
      }
      const found = await transaction.execute<ProcessedMessage>({
        name: 'find-processed',
        text: SELECT,
        values: [consumer, key],
      });
      if (found.rows[0] !== undefined) {
        return found.rows[0];
      }
      // It expired and was purged between the two statements: claim it again.
    }
  } catch (error) {
    throw isLockTimeout(error) ? new KeyBusyError(consumer, key, error) : error;
  }
}

/** Keeps a request's reply with its key, in the handler's transaction. */
export async function storeReply(
  transaction: TransactionQueryRunner,
  { consumer, key }: Claim,
  reply: unknown,
): Promise<void> {
  await transaction.execute({
    name: 'store-reply',
    text: SET_REPLY,
    values: [consumer, key, JSON.stringify(reply)],
  });
}
