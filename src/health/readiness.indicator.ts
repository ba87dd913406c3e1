import { Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthIndicatorResult } from '@nestjs/terminus';
import { DataSource } from 'typeorm';
import { isWritable, pendingMigrations, withinTime } from '../database/index.js';
import { ReliableRmqServer } from '../messaging/index.js';
import { redactUrls } from '../observability/index.js';

/** Probes do not wait long, and no answer is an answer. */
const ANSWER_TIMEOUT_MS = 3_000;

/** Asks each part for its state. Answers with reasons, and without passwords. */
@Injectable()
export class ReadinessIndicator {
  constructor(
    private readonly indicators: HealthIndicatorService,
    private readonly server: ReliableRmqServer,
    private readonly dataSource: DataSource,
  ) {}

  consumer(name: string): HealthIndicatorResult {
    const check = this.indicators.check(name);
    const reason = this.server.notConsumingBecause;
    return reason === undefined ? check.up() : check.down({ reason });
  }

  database(name: string): Promise<HealthIndicatorResult> {
    return this.ask(name, async () =>
      (await isWritable(this.dataSource)) ? undefined : 'the database is read-only',
    );
  }

  migrations(name: string): Promise<HealthIndicatorResult> {
    return this.ask(name, async () => {
      const pending = await pendingMigrations(this.dataSource);
      return pending.length === 0 ? undefined : `pending: ${pending.join(', ')}`;
    });
  }

  private async ask(
    name: string,
    fault: () => Promise<string | undefined>,
  ): Promise<HealthIndicatorResult> {
    const check = this.indicators.check(name);
    try {
      const reason = await withinTime(ANSWER_TIMEOUT_MS, fault());
      return reason === undefined ? check.up() : check.down({ reason });
    } catch (error) {
      return check.down({ reason: redactUrls(String(error)) });
    }
  }
}
