import { Injectable } from '@nestjs/common';
import { HealthIndicatorService, type HealthIndicatorResult } from '@nestjs/terminus';
import { DataSource } from 'typeorm';
import { isWritable, pendingMigrations, withinTime } from '../database/index.js';
import { ReliableRmqServer } from '../messaging/index.js';
import { redactUrls } from '../observability/index.js';

/** Probes do not wait long, and no answer is an answer. */
const ANSWER_TIMEOUT_MS = 3_000;

type Fault = string | undefined;

/** Asks each part for its state. Answers with reasons, and without passwords. */
@Injectable()
export class ReadinessIndicator {
  /** One question at a time for each part: what waits in a silent network holds a connection. */
  private readonly asking = new Map<string, Promise<Fault>>();

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

  private async ask(name: string, fault: () => Promise<Fault>): Promise<HealthIndicatorResult> {
    const check = this.indicators.check(name);
    try {
      const reason = await withinTime(ANSWER_TIMEOUT_MS, this.shared(name, fault));
      return reason === undefined ? check.up() : check.down({ reason });
    } catch (error) {
      return check.down({ reason: redactUrls(String(error)) });
    }
  }

  private shared(name: string, fault: () => Promise<Fault>): Promise<Fault> {
    const asking = this.asking.get(name) ?? fault().finally(() => this.asking.delete(name));
    this.asking.set(name, asking);
    return asking;
  }
}
