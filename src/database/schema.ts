import type { DataSource } from 'typeorm';
import { migrations } from '../../migrations/index.js';
import { outsideTransaction } from './ambient-transaction.js';

/** Only one program migrates at a time; the number is arbitrary and must not change. */
const MIGRATION_LOCK = 7_391_204_518;

/**
 * Runs the pending migrations, one program at a time.
 *
 * @returns the names of those that ran
 */
export async function migrate(dataSource: DataSource): Promise<string[]> {
  const lock = dataSource.createQueryRunner();
  try {
    await lock.startTransaction();
    await lock.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    const done = await dataSource.runMigrations();
    await lock.commitTransaction();
    return done.map((migration) => migration.name);
  } finally {
    await lock.release();
  }
}

/** The names of migrations that the database does not have yet. Reads only. */
export async function pendingMigrations(dataSource: DataSource): Promise<string[]> {
  return outsideTransaction(async () => {
    const [{ exists }] = await dataSource.query<[{ exists: boolean }]>(
      `SELECT to_regclass('migrations') IS NOT NULL AS exists`,
    );
    const rows = exists
      ? await dataSource.query<{ name: string }[]>('SELECT name FROM migrations')
      : [];
    const applied = new Set(rows.map((row) => row.name));
    return migrations.map((migration) => migration.name).filter((name) => !applied.has(name));
  });
}

/** A connection answers and may write: false on a standby and after a failover to read-only. */
export async function isWritable(dataSource: DataSource): Promise<boolean> {
  return outsideTransaction(async () => {
    const [{ writable }] = await dataSource.query<[{ writable: boolean }]>(
      `SELECT NOT pg_is_in_recovery() AND NOT current_setting('transaction_read_only')::boolean AS writable`,
    );
    return writable;
  });
}
