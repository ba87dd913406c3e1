import type { HandlerRegistry } from '../handler-registry.js';
import { CONSUMER_CLOCKS } from './consumer-clock.js';
import type { Purgeable } from './purgeable.js';

/**
 * A gap is needed as long as a key can be from before its end: for one retention of its consumer's clock, which the
 * gap itself sets back.
 */
const DELETE = `
  WITH gone AS (
    DELETE FROM consumer_gap
    WHERE (consumer, began_at) IN (
      SELECT gap.consumer, gap.began_at
      FROM consumer_gap gap
      JOIN (${CONSUMER_CLOCKS}) clocks USING (consumer)
      JOIN unnest($1::text[], $3::double precision[]) AS kept (consumer, retention_ms) USING (consumer)
      WHERE gap.ended_at < clocks.clock - kept.retention_ms * interval '1 millisecond'
      LIMIT $2
      FOR UPDATE OF gap SKIP LOCKED
    )
    RETURNING 1
  )
  SELECT count(*)::int AS deleted FROM gone`;

/** The gaps of this service's handlers that no key is kept longer for any more. */
export const oldGaps = (registry: HandlerRegistry): Purgeable => ({
  name: 'consumer_gap',
  purgeBatch: async (manager, limit) => {
    const handlers = registry.all();
    const [row] = await manager.query<[{ deleted: number }]>(DELETE, [
      handlers.map(({ consumer }) => consumer),
      limit,
      handlers.map(({ retentionMs }) => retentionMs),
    ]);
    return row.deleted;
  },
});
