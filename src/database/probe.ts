import type { DataSource, QueryRunner } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { PooledQueryRunner } from './pooled-query-runner.js';
import { withinTime } from './within-time.js';

const ANSWER_TIMEOUT_MS = 5_000;

/**
 * Asks the database about itself, outside of any transaction. A connection on which no answer comes is
 * closed: who asks again and again while the network is silent would use the pool up, and an answer on a
 * connection that the network has forgotten never comes.
 *
 * @param isGood whether a connection that gives this answer is one to keep
 */
export async function probe<T>(
  dataSource: DataSource,
  ask: (runner: QueryRunner) => Promise<T>,
  isGood: (answer: T) => boolean = () => true,
): Promise<T> {
  const runner = new PooledQueryRunner(dataSource.driver as PostgresDriver, 'master');
  await runner.connect();
  try {
    const answer = await withinTime(ANSWER_TIMEOUT_MS, ask(runner));
    if (isGood(answer)) {
      await runner.release();
    } else {
      runner.destroy(new Error('it leads to a server that is of no use'));
    }
    return answer;
  } catch (error) {
    runner.destroy(error);
    throw error;
  }
}
