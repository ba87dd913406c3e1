import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { SchedulerRegistry } from '@nestjs/schedule';
import { IDEMPOTENCY_OPTIONS, type IdempotencyOptions } from '../idempotency.options.js';
import { ConsumerActivity, NOTE_INTERVAL_MS } from './consumer-activity.js';
import { Purge } from './purge.js';

/**
 * Notes activity and purges from time to time. Intervals, not times of a day: those would be the host's clock, and
 * all replicas at once. The scheduler clears them when the service stops.
 */
@Injectable()
export class RetentionSchedule implements OnApplicationBootstrap {
  constructor(
    private readonly scheduler: SchedulerRegistry,
    private readonly activity: ConsumerActivity,
    private readonly purge: Purge,
    @Inject(IDEMPOTENCY_OPTIONS) private readonly options: IdempotencyOptions,
  ) {}

  onApplicationBootstrap(): void {
    this.every('consumer-activity', NOTE_INTERVAL_MS, () => this.activity.note());
    this.every('purge', this.options.purgeIntervalMs, () => this.purge.run());
  }

  /** Neither of the two rejects. */
  private every(name: string, ms: number, task: () => Promise<unknown>): void {
    const timer = setInterval(() => void task(), ms);
    timer.unref();
    this.scheduler.addInterval(name, timer);
  }
}
