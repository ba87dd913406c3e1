import type { EntityManager } from 'typeorm';

/**
 * A table whose rows have an end. Given to the idempotency module's `purgeable` option in `app.module.ts`; the
 * purge decides when, how many at a time, and which replica.
 *
 * @example
 * const sentEvents: Purgeable = {
 *   name: 'outbox',
 *   purgeBatch: async (manager, limit) => {
 *     const [{ deleted }] = await manager.query(DELETE_SENT, [limit]);
 *     return deleted;
 *   },
 * };
 */
export interface Purgeable {
  /** Of the table; a metric's label. */
  readonly name: string;
  /**
   * Deletes some rows in the transaction of the batch, and is called again until it finds fewer than the limit. It
   * has to skip what is locked (`FOR UPDATE SKIP LOCKED`), and to ask the database what time it is.
   *
   * @param limit rows, at most
   * @returns how many were deleted
   */
  purgeBatch(manager: EntityManager, limit: number): Promise<number>;
}
