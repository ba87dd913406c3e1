import { Inject, Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { DataSource } from 'typeorm';
import {
  inTransaction,
  outsideTransaction,
  type TransactionOptions,
} from '../../database/index.js';
import { HandlerRegistry } from '../handler-registry.js';
import { IDEMPOTENCY_OPTIONS, type IdempotencyOptions } from '../idempotency.options.js';

/** How often a consumer is noted, in milliseconds. */
export const NOTE_INTERVAL_MS = 60_000;
/** A few notes may fail, and a deployment takes some minutes; longer than this is a gap. */
const GAP_MS = 5 * NOTE_INTERVAL_MS;

const LIMITS: TransactionOptions = {
  isolation: 'READ COMMITTED',
  timeoutMs: 10_000,
  lockTimeoutMs: 5_000,
};

const ADD = `
  INSERT INTO consumer_activity (consumer)
  SELECT consumer
  FROM unnest($1::text[]) AS consumer,
       (SELECT set_config('lock_timeout', $2, true), set_config('statement_timeout', $3, true)) limits
  ORDER BY consumer
  ON CONFLICT (consumer) DO NOTHING`;

/** In order, so that replicas that note at the same time wait for each other and do not deadlock. */
const LOCK = `
  SELECT FROM consumer_activity WHERE consumer = ANY ($1::text[]) ORDER BY consumer FOR UPDATE`;

const NOTE = `
  WITH gap AS (
    INSERT INTO consumer_gap (consumer, began_at, ended_at)
    SELECT consumer, active_at, now()
    FROM consumer_activity
    WHERE consumer = ANY ($1::text[])
      AND active_at < now() - $2::double precision * interval '1 millisecond'
  )
  UPDATE consumer_activity SET active_at = greatest(active_at, now()) WHERE consumer = ANY ($1::text[])`;

/**
 * Notes which consumers are consuming, by the database's clock, so that time in which none of the replicas did is
 * known afterwards and does not count as retention: the messages were waiting in the queue meanwhile.
 */
@Injectable()
export class ConsumerActivity implements OnModuleDestroy {
  private readonly logger = new Logger(ConsumerActivity.name);
  private noting: Promise<void> = Promise.resolve();

  constructor(
    private readonly dataSource: DataSource,
    private readonly registry: HandlerRegistry,
    @Inject(IDEMPOTENCY_OPTIONS) private readonly options: IdempotencyOptions,
  ) {}

  /** Notes those that consume right now, in a transaction of its own. Never rejects: the next note makes up for it. */
  note(): Promise<void> {
    this.noting = this.noting
      .then(() => outsideTransaction(() => this.write(this.consuming())))
      .catch((error: unknown) => {
        this.logger.warn(`Not noted who is consuming, tried again in a minute: ${String(error)}`);
      });
    return this.noting;
  }

  async onModuleDestroy(): Promise<void> {
    await this.noting;
  }

  private consuming(): string[] {
    return this.registry
      .all()
      .filter(({ patterns }) => patterns.every((pattern) => this.options.isConsuming(pattern)))
      .map(({ consumer }) => consumer);
  }

  private async write(consumers: string[]): Promise<void> {
    if (consumers.length === 0) {
      return;
    }
    const { lockTimeoutMs, timeoutMs } = LIMITS;
    await inTransaction(this.dataSource, LIMITS, async (transaction) => {
      await transaction.execute({
        text: ADD,
        values: [consumers, `${lockTimeoutMs}`, `${timeoutMs}`],
      });
      await transaction.execute({ text: LOCK, values: [consumers] });
      await transaction.execute({ text: NOTE, values: [consumers, GAP_MS] });
    });
  }
}
