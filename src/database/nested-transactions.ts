import { AsyncLocalStorage } from 'node:async_hooks';
import type { EntityManager } from 'typeorm';

/** A transaction, or a nested one in it, whose own nested transactions take turns. */
class Level {
  private last: Promise<unknown> = Promise.resolve();

  next<T>(work: () => Promise<T>): Promise<T> {
    const result = this.last.then(work);
    this.last = result.catch(() => undefined);
    return result;
  }
}

const current = new AsyncLocalStorage<Level>();

/** Runs the work of a transaction, in which nested ones are to take turns. */
export function asOutermost<T>(work: () => T): T {
  return current.run(new Level(), work);
}

/**
 * Makes parallel nested transactions of one level run one after another. They are savepoints of one
 * connection, and TypeORM names them by their depth: overlapping, one that rolls back would take the
 * finished work of another with it, and nobody would be told.
 *
 * @param isNested whether a transaction of this manager, begun now, is a savepoint
 */
export function nestInTurn(manager: EntityManager, isNested: () => boolean): EntityManager {
  const transaction = manager.transaction.bind(manager) as (...args: unknown[]) => Promise<unknown>;
  const inTurn = (...args: unknown[]): Promise<unknown> => {
    const level = current.getStore();
    return level === undefined || !isNested()
      ? transaction(...args)
      : level.next(() => asOutermost(() => transaction(...args)));
  };
  return Object.assign(manager, { transaction: inTurn });
}
