import { setTimeout as sleep } from 'node:timers/promises';

const LOOK_EVERY_MS = 50;

/** The statements of one connection that PostgreSQL has been sent and has not answered. */
export class Unanswered {
  private count = 0;
  private since = 0;

  /** To be called with the answer to a statement, whatever it is. */
  readonly answered = (): void => {
    this.count--;
    this.since = performance.now();
  };

  sent(): void {
    if (this.count++ === 0) {
      this.since = performance.now();
    }
  }

  /**
   * Waits until everything is answered, and gives up when nothing has been for `limitMs`.
   *
   * @returns whether it gave up
   */
  async areIgnored(limitMs: number): Promise<boolean> {
    while (this.count > 0) {
      const left = this.since + limitMs - performance.now();
      if (left <= 0) {
        return true;
      }
      await sleep(Math.min(left, LOOK_EVERY_MS));
    }
    return false;
  }
}
