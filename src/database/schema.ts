import type { DataSource, QueryRunner } from 'typeorm';
import { migrations } from '../../migrations/index.js';
import { probe } from './probe.js';

/** Only one program migrates at a time; the number is arbitrary and must not change. */
const MIGRATION_LOCK = 7_391_204_518;

/**
 * Runs the pending migrations, one program at a time. The lock is the transaction's, not the session's: a
 * pooler in transaction mode hands sessions on, and a lock with them.
 *
 * @returns the names of those that ran
 */
export async function migrate(dataSource: DataSource): Promise<string[]> {
  const lock = dataSource.createQueryRunner();
  await lock.startTransaction();
  try {
    await lock.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    const done = await dataSource.runMigrations();
    await lock.commitTransaction();
    return done.map((migration) => migration.name);
  } catch (error) {
    await lock.rollbackTransaction().catch(() => undefined);
    throw error;
  } finally {
    await lock.release();
  }
}

/** The names of migrations that the database does not have yet. Reads only. */
export async function pendingMigrations(dataSource: DataSource): Promise<string[]> {
  return probe(dataSource, async (runner) => {
    const [{ exists }] = (await runner.query(
      `SELECT to_regclass('migrations') IS NOT NULL AS exists`,
    )) as [{ exists: boolean }];
    const rows = exists
      ? ((await runner.query('SELECT name FROM migrations')) as { name: string }[])
      : [];
    const applied = new Set(rows.map((row) => row.name));
    return migrations.map((migration) => migration.name).filter((name) => !applied.has(name));
  });
}

/**
 * A connection answers and may write: false on a standby and after a failover to read-only. The next question
 * then takes another connection, which may lead to the new primary.
 */
export async function isWritable(dataSource: DataSource): Promise<boolean> {
  return probe(dataSource, askIfWritable, (writable) => writable);
}

async function askIfWritable(runner: QueryRunner): Promise<boolean> {
  const [{ writable }] = (await runner.query(
    `SELECT NOT pg_is_in_recovery() AND NOT current_setting('transaction_read_only')::boolean AS writable`,
  )) as [{ writable: boolean }];
  return writable;
}
