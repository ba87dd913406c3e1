import type { DataSource } from 'typeorm';

/** The catalogue, not information_schema: it sees a constraint whoever owns it. */
const FIND = `
  SELECT 1
  FROM pg_constraint
  WHERE conrelid = to_regclass('processed_message')
    AND contype IN ('p', 'u')
    AND NOT condeferrable
    AND (SELECT array_agg(attname::text ORDER BY attname)
         FROM pg_attribute
         WHERE attrelid = conrelid AND attnum = ANY (conkey)) = ARRAY['consumer', 'key']`;

/** Whether the one constraint that everything rests on is there. Runs outside any transaction. */
export async function hasKeyConstraint(dataSource: DataSource): Promise<boolean> {
  const rows = await dataSource.query<unknown[]>(FIND);
  return rows.length > 0;
}
