import {
  Injectable,
  Logger,
  type BeforeApplicationShutdown,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { DataSource } from 'typeorm';
import { withinTime } from '../../database/index.js';
import { duplicateAgeSeconds, redactUrls } from '../../observability/index.js';
import { addToToday } from './consumer-day.store.js';
import { Tally } from './tally.js';

const FLUSH_EVERY_MS = 5_000;
/** A stop does not wait longer for statistics. */
const LAST_FLUSH_MS = 2_000;

/**
 * What really happens to messages, by consumer and day: the figures that a retention is judged by. Counted in
 * memory and written every five seconds, never on a message's way. A process that is killed loses its last
 * five seconds; a write whose answer is lost is written again, and may count twice.
 */
@Injectable()
export class Evidence implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly logger = new Logger(Evidence.name);
  private readonly tally = new Tally();
  private timer: NodeJS.Timeout | undefined;
  private flushing: Promise<void> | undefined;

  constructor(private readonly dataSource: DataSource) {}

  processed(consumer: string): void {
    this.tally.count(consumer, 'processed');
  }

  /** @param ageSeconds of the key, by the database's clock */
  duplicate(consumer: string, ageSeconds: number): void {
    duplicateAgeSeconds.observe({ consumer }, ageSeconds);
    this.tally.duplicate(consumer, ageSeconds);
  }

  keyReuse(consumer: string): void {
    this.tally.count(consumer, 'keyReuses');
  }

  deadLetter(consumer: string): void {
    this.tally.count(consumer, 'deadLetters');
  }

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => void this.flush(), FLUSH_EVERY_MS);
    this.timer.unref();
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    const last = (this.flushing ?? Promise.resolve()).then(() => this.flush());
    await withinTime(LAST_FLUSH_MS, last).catch(() => {
      this.logger.warn('The last statistics were not written: the database did not answer.');
    });
  }

  /** Writes down what was counted. Never rejects; one at a time, so that a silent database holds one connection. */
  flush(): Promise<void> {
    this.flushing ??= this.write().finally(() => {
      this.flushing = undefined;
    });
    return this.flushing;
  }

  private async write(): Promise<void> {
    const taken = this.tally.take();
    if (taken.size === 0) {
      return;
    }
    try {
      await addToToday(this.dataSource, taken);
    } catch (error) {
      this.tally.putBack(taken);
      this.logger.debug(`Statistics are written later: ${redactUrls(String(error))}`);
    }
  }
}
