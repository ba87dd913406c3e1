import { Logger } from '@nestjs/common';
import { atMost } from './at-most.js';
import type { QueueConsumer } from './queue-consumer.js';

const FIRST_PROBE_MS = 250;
const LONGEST_PROBE_MS = 15_000;
/** A silent network answers nothing, for as long as a quarter of an hour. */
const PROBE_TIMEOUT_MS = 5_000;

/**
 * Stops taking messages while something that every message needs is away, and goes on by itself. A
 * message that meets an outage has not failed, and must not be tried again and again meanwhile.
 */
export class Outage {
  private readonly logger = new Logger(Outage.name);
  private pausing: Promise<void> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;

  constructor(
    private readonly consumer: QueueConsumer,
    private readonly isRecovered: () => Promise<boolean>,
  ) {}

  get active(): boolean {
    return this.pausing !== undefined;
  }

  /** Resolves when the broker delivers no more: only then may messages be handed back. */
  begin(error: unknown): Promise<void> {
    if (this.pausing === undefined) {
      this.logger.error(`Consuming pauses: ${String(error)}`);
      this.pausing = this.consumer.pause();
      this.probeIn(FIRST_PROBE_MS);
    }
    return this.pausing;
  }

  /** Probes no more, because the service stops. */
  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private probeIn(delayMs: number): void {
    if (this.stopped) {
      return;
    }
    this.timer = setTimeout(() => void this.probe(delayMs), delayMs);
  }

  private async probe(delayMs: number): Promise<void> {
    try {
      if (await atMost(PROBE_TIMEOUT_MS, this.isRecovered())) {
        await this.pausing;
        await this.consumer.resume();
        this.pausing = undefined;
        this.logger.log('Consuming goes on.');
        return;
      }
    } catch (error) {
      this.logger.debug(`Still away: ${String(error)}`);
    }
    this.probeIn(Math.min(delayMs * 2, LONGEST_PROBE_MS));
  }
}
