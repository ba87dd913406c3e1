import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { dataSourceOptions, joinAmbientTransaction } from '../../../src/database/index.js';
import type { Duration } from '../../../src/duration/index.js';
import { Evidence } from '../../../src/idempotency/evidence/evidence.js';
import { handlerFrom } from '../../../src/idempotency/handler.js';
import { HandlerRegistry } from '../../../src/idempotency/handler-registry.js';
import type { IdempotencyOptions } from '../../../src/idempotency/idempotency.options.js';
import { IdempotentProcessor, type Handler } from '../../../src/idempotency/index.js';
import { ConsumerActivity } from '../../../src/idempotency/retention/consumer-activity.js';
import { Purge } from '../../../src/idempotency/retention/purge.js';
import type { Cleanup, TestDatabase } from '../../support/index.js';

// There is no application here that has a logger of its own.
Logger.overrideLogger(false);

export const CONSUMER = 'shop/sale';

interface ReplicaOptions extends Partial<Pick<IdempotencyOptions, 'purgeable' | 'purge'>> {
  consumers?: string[];
  retention?: Duration;
  serviceName?: string;
  /** Instead of the database's own: a proxy's. */
  url?: string;
}

/** What one process of a service has for its keys, without a broker. */
export interface Replica {
  purge: Purge;
  activity: ConsumerActivity;
  processor: IdempotentProcessor;
  handler: Handler;
  dataSource: DataSource;
  /** The consumers that consume right now; all of them at first. */
  consuming: Set<string>;
}

export async function openReplica(
  cleanup: Cleanup,
  db: TestDatabase,
  {
    consumers = [CONSUMER],
    retention = '90d',
    serviceName = 'shop',
    url,
    ...more
  }: ReplicaOptions = {},
): Promise<Replica> {
  const dataSource = joinAmbientTransaction(
    new DataSource(
      dataSourceOptions({ url: url ?? db.url, applicationName: 'replica', poolSize: 10 }),
    ),
  );
  await dataSource.initialize();
  cleanup.defer(() => dataSource.destroy());
  const registry = new HandlerRegistry();
  const handlers = consumers.map((consumer) =>
    handlerFrom({ keyFrom: 'id', options: { retention } }, consumer, false, [consumer]),
  );
  for (const handler of handlers) registry.add(HandlerRegistry, {}, handler);
  const consuming = new Set(consumers);
  const options: IdempotencyOptions = {
    serviceName,
    poolSize: 10,
    consumerDelayMs: 1,
    reprocessingMs: 1,
    purgeIntervalMs: 1,
    isConsuming: (pattern) => consuming.has(pattern),
    transport: () => {
      throw new Error('there is none');
    },
    ...more,
  };
  return {
    purge: new Purge(dataSource, registry, options),
    activity: new ConsumerActivity(dataSource, registry, options),
    processor: new IdempotentProcessor(dataSource, new Evidence(dataSource)),
    handler: handlers[0]!,
    dataSource,
    consuming,
  };
}

/** Keys with numbers from 1, that have expired so long ago; or will, when it is negative. */
export async function seedKeys(
  db: TestDatabase,
  { consumer = CONSUMER, count = 1, prefix = 'K', expired }: SeedOptions,
): Promise<void> {
  await db.query(
    `INSERT INTO processed_message (consumer, key, processed_at, expires_at)
     SELECT $1, $2 || n, now() - $4::interval - interval '90 days', now() - $4::interval
     FROM generate_series(1, $3) n`,
    [consumer, prefix, count, expired],
  );
}

interface SeedOptions {
  consumer?: string;
  count?: number;
  prefix?: string;
  /** An interval of PostgreSQL's: `1 hour`, `-2 days`. */
  expired: string;
}

export async function countKeys(db: TestDatabase, where = 'true'): Promise<number> {
  const [row] = await db.query<{ count: number }>(
    `SELECT count(*)::int FROM processed_message WHERE ${where}`,
  );
  return row!.count;
}

/** As if the consumer had been noted so long ago. */
export async function seenAgo(db: TestDatabase, ago: string, consumer = CONSUMER): Promise<void> {
  await db.query(
    `INSERT INTO consumer_activity VALUES ($1, now() - $2::interval)
     ON CONFLICT (consumer) DO UPDATE SET active_at = excluded.active_at`,
    [consumer, ago],
  );
}

/** Writes each deleted key into `deletion`, with its transaction; `delay` is slept for each. */
export const logDeletions = (delaySeconds = 0): string => `
  CREATE TABLE deletion (key text NOT NULL, transaction xid8 NOT NULL DEFAULT pg_current_xact_id());
  CREATE FUNCTION log_deletion() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      PERFORM pg_sleep(${delaySeconds}) WHERE ${delaySeconds} > 0;
      INSERT INTO deletion (key) VALUES (old.key);
      RETURN old;
    END $$;
  CREATE TRIGGER log_deletion BEFORE DELETE ON processed_message
    FOR EACH ROW EXECUTE FUNCTION log_deletion()`;
