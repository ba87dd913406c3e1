import type { HandlerRegistry } from '../handler-registry.js';
import { CONSUMER_CLOCKS } from './consumer-clock.js';
import type { Purgeable } from './purgeable.js';

/**
 * A claim of such a key waits for the end of the batch, and takes it as a new one. Rows that others hold are left
 * for the next time.
 */
const DELETE = `
  WITH gone AS (
    DELETE FROM processed_message
    WHERE ctid = ANY (ARRAY (
      SELECT expired.row
      FROM (${CONSUMER_CLOCKS}) clocks
      CROSS JOIN LATERAL (
        SELECT ctid AS row
        FROM processed_message
        WHERE consumer = clocks.consumer AND expires_at < clocks.clock
        ORDER BY expires_at
        LIMIT $2
        FOR UPDATE SKIP LOCKED
      ) expired
      LIMIT $2
    ))
    RETURNING 1
  )
  SELECT count(*)::int AS deleted FROM gone`;

/** The keys of this service's handlers whose retention is over. */
export const expiredKeys = (registry: HandlerRegistry): Purgeable => ({
  name: 'processed_message',
  purgeBatch: async (manager, limit) => {
    const consumers = registry.all().map(({ consumer }) => consumer);
    const [row] = await manager.query<[{ deleted: number }]>(DELETE, [consumers, limit]);
    return row.deleted;
  },
});
