import { setTimeout as sleep } from 'node:timers/promises';
import { Inject, Injectable, Logger, type OnModuleDestroy } from '@nestjs/common';
import { DataSource } from 'typeorm';
import {
  inTransaction,
  outsideTransaction,
  type TransactionOptions,
} from '../../database/index.js';
import { purgeDeleted, purgeRuns, type PurgeOutcome } from '../../observability/index.js';
import { oldDays } from '../evidence/old-days.js';
import { HandlerRegistry } from '../handler-registry.js';
import { IDEMPOTENCY_OPTIONS, type IdempotencyOptions } from '../idempotency.options.js';
import { expiredKeys } from './expired-keys.js';
import { oldGaps } from './old-gaps.js';
import type { Purgeable } from './purgeable.js';

/** Some ten milliseconds of work; a claim of a key in it waits for no longer. */
const BATCH_ROWS = 1_000;
/** A run that has not finished leaves the rest to the next one. */
const BUDGET_MS = 5 * 60_000;

/** A batch that meets a slow disk is given up rather than keeping claims of its keys waiting. */
const LIMITS: TransactionOptions = {
  isolation: 'READ COMMITTED',
  timeoutMs: 5_000,
  lockTimeoutMs: 1_000,
};

/** The first half of the lock's number; the other one is the service's. Arbitrary, and must not change. */
const PURGE_LOCK = 1_830_571_946;

/** The transaction's, not the session's: a pooler in transaction mode hands sessions on, and a lock with them. */
const TRY_LOCK = `
  SELECT pg_try_advisory_xact_lock($1, hashtext($2)) AS ours
  FROM (SELECT set_config('lock_timeout', $3, true), set_config('statement_timeout', $4, true)) limits`;

export interface PurgeResult {
  outcome: PurgeOutcome;
  /** Rows of all tables. */
  deleted: number;
}

/**
 * Deletes what has expired, in batches that are transactions of their own. Whatever ends it, what is deleted is
 * deleted and the rest is found by the next run, on whichever replica.
 */
@Injectable()
export class Purge implements OnModuleDestroy {
  private readonly logger = new Logger(Purge.name);
  private readonly tables: readonly Purgeable[];
  private readonly batchRows: number;
  private readonly budgetMs: number;
  private readonly stopping = new AbortController();
  private running: Promise<PurgeResult> | undefined;

  constructor(
    private readonly dataSource: DataSource,
    registry: HandlerRegistry,
    @Inject(IDEMPOTENCY_OPTIONS) private readonly options: IdempotencyOptions,
  ) {
    const { purgeable = [], purge = {} } = options;
    this.tables = [expiredKeys(registry), oldGaps(registry), oldDays, ...purgeable];
    this.batchRows = purge.batchRows ?? BATCH_ROWS;
    this.budgetMs = purge.budgetMs ?? BUDGET_MS;
  }

  /**
   * Purges until nothing is left, the time is up, the service stops, or another replica is found at it. Asked
   * while it runs, it is the same run. Never rejects: a failure is logged, and the next run goes on.
   */
  run(): Promise<PurgeResult> {
    this.running ??= outsideTransaction(() => this.purge()).finally(() => {
      this.running = undefined;
    });
    return this.running;
  }

  /** Waits for the batch in work. */
  async onModuleDestroy(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async purge(): Promise<PurgeResult> {
    const until = performance.now() + this.budgetMs;
    const result: PurgeResult = { outcome: 'completed', deleted: 0 };
    let open = this.tables;
    // In turn, so that a large table does not use up the time of the others.
    while (open.length > 0) {
      const unfinished: Purgeable[] = [];
      for (const table of open) {
        const end = this.endedBy(until) ?? (await this.purgeSome(table, result));
        if (end === 'unfinished') {
          unfinished.push(table);
        } else if (end !== 'finished' && end !== 'failed') {
          return this.report({ ...result, outcome: end });
        }
      }
      open = unfinished;
    }
    return this.report(result);
  }

  private endedBy(until: number): 'stopped' | 'out_of_time' | undefined {
    if (this.stopping.signal.aborted) {
      return 'stopped';
    }
    return performance.now() >= until ? 'out_of_time' : undefined;
  }

  /** One batch, and then a rest that is as long: half of the time belongs to the messages. */
  private async purgeSome(
    table: Purgeable,
    result: PurgeResult,
  ): Promise<'finished' | 'unfinished' | 'failed' | 'elsewhere'> {
    const started = performance.now();
    try {
      const deleted = await this.batch(table);
      if (deleted === undefined) {
        return 'elsewhere';
      }
      result.deleted += deleted;
      purgeDeleted.inc({ table: table.name }, deleted);
      if (deleted < this.batchRows) {
        return 'finished';
      }
    } catch (error) {
      result.outcome = 'failed';
      this.logger.warn(`${table.name} is not purged, the next run goes on: ${String(error)}`);
      return 'failed';
    }
    const { signal } = this.stopping;
    await sleep(performance.now() - started, undefined, { signal }).catch(() => undefined);
    return 'unfinished';
  }

  /** In a transaction of its own. Undefined when another replica is at it. */
  private batch(table: Purgeable): Promise<number | undefined> {
    const { lockTimeoutMs, timeoutMs } = LIMITS;
    const lock = [PURGE_LOCK, this.options.serviceName, `${lockTimeoutMs}`, `${timeoutMs}`];
    return inTransaction(this.dataSource, LIMITS, async (transaction) => {
      const { rows } = await transaction.execute<{ ours: boolean }>({
        text: TRY_LOCK,
        values: lock,
      });
      return rows[0]?.ours ? table.purgeBatch(transaction.manager, this.batchRows) : undefined;
    });
  }

  private report(result: PurgeResult): PurgeResult {
    purgeRuns.inc({ outcome: result.outcome });
    if (result.deleted > 0) {
      this.logger.log(`Purged ${result.deleted} rows; ${result.outcome.replaceAll('_', ' ')}.`);
    }
    return result;
  }
}
