import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import type { DataSource, EntityManager, QueryRunner, ReplicationMode } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { DatabaseSilentError, TransactionTimeoutError } from './errors.js';
import { nestInTurn, Turns } from './nested-transactions.js';
import { PooledQueryRunner } from './pooled-query-runner.js';
import { isConnectionSpoiled } from './sql-state.js';
import { TransactionQueryRunner, type Isolation } from './transaction-query-runner.js';
import { withinTime } from './within-time.js';

export interface TransactionOptions {
  isolation: Isolation;
  /** For the whole transaction up to COMMIT, in milliseconds. */
  timeoutMs: number;
  /**
   * How long a statement waits for a lock of another transaction, in milliseconds. The transaction's
   * first statement tells PostgreSQL, together with the timeout.
   */
  lockTimeoutMs: number;
}

/** The transactions of this process that have begun and not ended. */
const open = new Set<TransactionQueryRunner>();

/** What the code of a handler finds around it. */
interface Scope {
  runner: TransactionQueryRunner;
  /** For the nested transactions of this level, which are savepoints of one connection. */
  nested: Turns;
}

const ambient = new AsyncLocalStorage<Scope | undefined>();

function inScope<T>(runner: TransactionQueryRunner, work: () => T): T {
  return ambient.run({ runner, nested: new Turns() }, work);
}

/**
 * Runs `work` in a transaction that everything it calls joins: repositories, entity managers, query
 * builders, `dataSource.query`, nested `transaction()` calls as savepoints. Commits when `work`
 * resolves and rolls back when it rejects.
 *
 * @throws what `work` threw, or one of the errors of this folder when the transaction itself failed
 */
export async function inTransaction<T>(
  dataSource: DataSource,
  options: TransactionOptions,
  work: (transaction: TransactionQueryRunner) => Promise<T>,
): Promise<T> {
  const runner = new TransactionQueryRunner(dataSource);
  await runner.begin(options.isolation);
  open.add(runner);
  const timeout = new TransactionTimeoutError(options.timeoutMs);
  let working: Promise<T> | undefined;
  try {
    working = inScope(runner, () => work(runner));
    const result = await withinTime(options.timeoutMs, working, () => timeout);
    runner.seal();
    await runner.commit();
    runner.giveBack();
    return result;
  } catch (error) {
    const failure = error === timeout ? await overdue(runner, options, working, timeout) : error;
    runner.seal();
    if (error === timeout || isConnectionSpoiled(error)) {
      runner.destroy(failure);
    } else {
      await runner.rollback();
    }
    throw failure;
  } finally {
    open.delete(runner);
  }
}

/**
 * What a transaction that is past its time has failed with. PostgreSQL cancels a statement that takes too
 * long, so when it leaves one unanswered, the work is not what was slow.
 */
async function overdue(
  runner: TransactionQueryRunner,
  { timeoutMs, lockTimeoutMs }: TransactionOptions,
  working: Promise<unknown> | undefined,
  timeout: TransactionTimeoutError,
): Promise<unknown> {
  // The statement that sets the timeout is under that of locks only.
  const limitMs = Math.max(timeoutMs, lockTimeoutMs);
  if (await runner.isSilent(limitMs)) {
    return new DatabaseSilentError(limitMs);
  }
  // What the work itself has failed with by now says more: the connection broke, or its key is held.
  const failed = working?.then(
    () => timeout,
    (error: unknown) => error,
  );
  return Promise.race([failed, endOfTurn(timeout)]);
}

/**
 * Runs `fn` outside of the handler's transaction: its queries take connections of their own and
 * commit by themselves, whatever becomes of the handler. They can therefore happen more than once.
 *
 * @example await outsideTransaction(() => this.audit.insert({ at: new Date() }));
 */
export function outsideTransaction<T>(fn: () => T): T {
  return ambient.run(undefined, fn);
}

/**
 * Makes a data source give the ambient transaction's connection to whoever asks it for one. Every
 * repository and query builder without a query runner of its own takes it from there.
 */
export function joinAmbientTransaction(dataSource: DataSource): DataSource {
  const scope = (): Scope | undefined => {
    const found = ambient.getStore();
    return found?.runner.dataSource === dataSource ? found : undefined;
  };
  const inTurn = (manager: EntityManager): EntityManager =>
    nestInTurn(manager, (transaction) => {
      const around = scope();
      return around === undefined
        ? transaction()
        : around.nested.next(() => inScope(around.runner, transaction));
    });
  const createEntityManager = dataSource.createEntityManager.bind(dataSource);
  dataSource.createEntityManager = (runner) => inTurn(createEntityManager(runner));
  inTurn(dataSource.manager);
  dataSource.createQueryRunner = (mode: ReplicationMode = 'master'): QueryRunner => {
    const transaction = scope()?.runner;
    if (transaction !== undefined) {
      return transaction;
    }
    const runner = new PooledQueryRunner(dataSource.driver as PostgresDriver, mode);
    return Object.assign(runner, { manager: dataSource.createEntityManager(runner) });
  };
  const destroy = dataSource.destroy.bind(dataSource);
  dataSource.destroy = async (): Promise<void> => {
    // Who closes the pool does not wait for handlers that had their time; PostgreSQL rolls them back.
    for (const runner of open) {
      if (runner.dataSource === dataSource) {
        runner.destroy(new Error('the service is stopping'));
      }
    }
    await destroy();
  };
  return dataSource;
}
