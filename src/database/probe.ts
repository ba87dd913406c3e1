import type { DataSource, QueryRunner } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { PooledQueryRunner } from './pooled-query-runner.js';
import { withinTime } from './within-time.js';

const ANSWER_TIMEOUT_MS = 5_000;

/**
 * Asks the database about itself, outside of any transaction. A connection on which no answer comes is
 * closed: who asks again and again while the network is silent would use the pool up, and an answer on a
 * connection that the network has forgotten never comes.
 */
export async function probe<T>(
  dataSource: DataSource,
  ask: (runner: QueryRunner) => Promise<T>,
): Promise<T> {
  const runner = new PooledQueryRunner(dataSource.driver as PostgresDriver, 'master');
  await runner.connect();
  try {
    const answer = await withinTime(ANSWER_TIMEOUT_MS, ask(runner));
    await runner.release();
    return answer;
  } catch (error) {
    runner.destroy(error);
    throw error;
  }
}
