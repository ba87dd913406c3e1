import type { DataSource } from 'typeorm';
import type { Counts } from './tally.js';

/** The day is the database's, in UTC: no host's clock or time zone has a say. */
const ADD = `
  INSERT INTO consumer_day (day, consumer, processed, duplicates, key_reuses, dead_letters, oldest_duplicate_seconds)
  SELECT (now() AT TIME ZONE 'UTC')::date, *
  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::double precision[])
  ON CONFLICT (day, consumer) DO UPDATE SET
    processed = consumer_day.processed + excluded.processed,
    duplicates = consumer_day.duplicates + excluded.duplicates,
    key_reuses = consumer_day.key_reuses + excluded.key_reuses,
    dead_letters = consumer_day.dead_letters + excluded.dead_letters,
    oldest_duplicate_seconds =
      greatest(consumer_day.oldest_duplicate_seconds, excluded.oldest_duplicate_seconds)`;

/** Adds counts to the rows of today, in one statement. */
export async function addToToday(
  dataSource: DataSource,
  byConsumer: ReadonlyMap<string, Counts>,
): Promise<void> {
  // In one order for all replicas: two that update the same rows cannot wait for each other.
  const rows = [...byConsumer].toSorted(([a], [b]) => (a < b ? -1 : 1));
  const column = (name: keyof Counts): unknown[] => rows.map(([, counts]) => counts[name] ?? null);
  await dataSource.query(ADD, [
    rows.map(([consumer]) => consumer),
    column('processed'),
    column('duplicates'),
    column('keyReuses'),
    column('deadLetters'),
    column('oldestDuplicateSeconds'),
  ]);
}
