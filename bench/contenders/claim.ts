const CONSUMER = 'bench/sale';
const RETENTION_MS = 90 * 86_400_000;
const LOCK_TIMEOUT_MS = 5_000;
const STATEMENT_TIMEOUT_MS = 60_000;

/** The template's own statement: it stores the same, and limits the transaction in the same way. */
export const CLAIM = `
  INSERT INTO processed_message (consumer, key, fingerprint, expires_at)
  SELECT $1, $2, $3, now() + $4::double precision * interval '1 millisecond'
  FROM (SELECT set_config('lock_timeout', $5, true), set_config('statement_timeout', $6, true)) limits
  ON CONFLICT (consumer, key) DO NOTHING`;

/** Its parameters. */
export function claimOf(key: string, fingerprint: Buffer): unknown[] {
  return [
    CONSUMER,
    key,
    fingerprint,
    RETENTION_MS,
    `${LOCK_TIMEOUT_MS}`,
    `${STATEMENT_TIMEOUT_MS}`,
  ];
}
