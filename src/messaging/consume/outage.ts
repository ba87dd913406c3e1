import { Logger } from '@nestjs/common';
import { atMost } from '../at-most.js';
import { messageOf } from '../error-text.js';

const FIRST_PROBE_MS = 250;
const LONGEST_PROBE_MS = 15_000;
/** A silent network answers nothing, for as long as a quarter of an hour. */
const PROBE_TIMEOUT_MS = 5_000;

/** What takes messages, and can stop taking them for a while. */
export interface Pausable {
  /** Resolves when the broker delivers no more. */
  pause(): Promise<void>;
  resume(): Promise<void>;
}

interface Pause {
  because: string;
  pausing: Promise<unknown>;
  over: Promise<void>;
  end: () => void;
}

/**
 * Stops taking messages while something that every message needs is away, and goes on by itself. A
 * message that meets an outage has not failed, and must not be tried again and again meanwhile.
 */
export class Outage {
  private readonly logger = new Logger(Outage.name);
  private pause: Pause | undefined;
  private timer: NodeJS.Timeout | undefined;
  private stopped = false;

  constructor(
    private readonly consumers: () => readonly Pausable[],
    private readonly isRecovered: () => Promise<boolean>,
  ) {}

  /** What is away, or undefined when nothing is. */
  get because(): string | undefined {
    return this.pause?.because;
  }

  /** Resolves when nothing is away. */
  get over(): Promise<void> {
    return this.pause?.over ?? Promise.resolve();
  }

  /** Resolves when the broker delivers no more: only then may messages be handed back. */
  async begin(error: unknown): Promise<void> {
    this.pause ??= this.start(messageOf(error));
    await this.pause.pausing;
  }

  /** Probes no more, because the service stops. */
  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private start(because: string): Pause {
    this.logger.error(`Consuming pauses: ${because}`);
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    const pausing = Promise.all(this.consumers().map((consumer) => consumer.pause()));
    this.probeIn(FIRST_PROBE_MS);
    return { because, pausing, over, end };
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
        await this.end();
        return;
      }
    } catch (error) {
      this.logger.debug(`Still away: ${messageOf(error)}`);
    }
    this.probeIn(Math.min(delayMs * 2, LONGEST_PROBE_MS));
  }

  private async end(): Promise<void> {
    const { pause } = this;
    await pause?.pausing;
    await Promise.all(this.consumers().map((consumer) => consumer.resume()));
    this.pause = undefined;
    pause?.end();
    this.logger.log('Consuming goes on.');
  }
}
