import type { EntityManager } from 'typeorm';

/** What may not overlap: each waits for the end of the one before it, however that ended. */
export class Turns {
  private last: Promise<unknown> = Promise.resolve();

  next<T>(work: () => Promise<T>): Promise<T> {
    const result = this.last.then(work);
    this.last = result.catch(() => undefined);
    return result;
  }
}

/**
 * Makes parallel nested transactions of one level run one after another. They are savepoints of one
 * connection, and TypeORM names them by their depth: overlapping, one that rolls back would take the
 * finished work of another with it, and nobody would be told.
 *
 * @param run gives a transaction of this manager its turn, when it is nested in one
 */
export function nestInTurn(
  manager: EntityManager,
  run: <T>(transaction: () => Promise<T>) => Promise<T>,
): EntityManager {
  const transaction = manager.transaction.bind(manager) as (...args: unknown[]) => Promise<unknown>;
  return Object.assign(manager, {
    transaction: (...args: unknown[]) => run(() => transaction(...args)),
  });
}
