import { Logger } from '@nestjs/common';
import { atMost } from '../at-most.js';

/** The messages that are in work. */
export class InFlight {
  private readonly logger = new Logger(InFlight.name);
  private readonly tasks = new Set<Promise<void>>();

  /** @param task never rejects */
  add(task: Promise<void>): void {
    this.tasks.add(task);
    void task.finally(() => this.tasks.delete(task));
  }

  /** Waits until nothing new can come and everything has ended, at most `graceMs` milliseconds. */
  async drain(graceMs: number, noMore: Promise<unknown>): Promise<void> {
    await atMost(
      graceMs,
      noMore.then(() => Promise.all(this.tasks)),
    );
    if (this.tasks.size > 0) {
      this.logger.warn(
        `${this.tasks.size} messages did not end within ${graceMs} ms and will be redelivered.`,
      );
    }
  }
}
