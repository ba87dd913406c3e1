import type { Purgeable } from '../retention/purgeable.js';

/** A year to compare with, and the month that is under way. */
const KEPT_DAYS = 400;

const DELETE = `
  WITH gone AS (
    DELETE FROM consumer_day
    WHERE (day, consumer) IN (
      SELECT day, consumer FROM consumer_day
      WHERE day < (now() AT TIME ZONE 'UTC')::date - $1::integer
      LIMIT $2
      FOR UPDATE SKIP LOCKED
    )
    RETURNING 1
  )
  SELECT count(*)::int AS deleted FROM gone`;

/** Statistics that are older than anybody compares with. */
export const oldDays: Purgeable = {
  name: 'consumer_day',
  purgeBatch: async (manager, limit) => {
    const [row] = await manager.query<[{ deleted: number }]>(DELETE, [KEPT_DAYS, limit]);
    return row.deleted;
  },
};
