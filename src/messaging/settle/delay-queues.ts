/**
 * The delays for which a queue has delay queues. Each wanted delay has some beside it, a little shorter
 * and longer, so that messages that failed together do not come back together: never a queue for each
 * message.
 */
export class DelayQueues {
  /** Ascending, in milliseconds; one queue for each. */
  readonly delaysMs: readonly number[];

  /**
   * @param wantedMs the delays of the retry schedules
   * @param jitter how far a delay may be from the wanted one, as a part of it; 0 for none
   */
  constructor(
    wantedMs: Iterable<number>,
    private readonly jitter: number,
  ) {
    const all = [...wantedMs].flatMap((delayMs) => [
      this.shortest(delayMs),
      delayMs,
      this.longest(delayMs),
    ]);
    this.delaysMs = [...new Set(all)].toSorted((a, b) => a - b);
  }

  /**
   * One of those that are near the wanted delay.
   *
   * @param random from 0 to 1
   */
  near(wantedMs: number, random: number): number {
    return this.between(this.shortest(wantedMs), this.longest(wantedMs), random);
  }

  /** One that is not shorter than the wanted delay, or the longest of all. */
  atLeast(wantedMs: number, random: number): number {
    return this.between(wantedMs, this.longest(wantedMs), random);
  }

  private between(fromMs: number, toMs: number, random: number): number {
    const near = this.delaysMs.filter((delayMs) => delayMs >= fromMs && delayMs <= toMs);
    return (
      near[Math.floor(random * near.length)] ??
      this.delaysMs.find((delayMs) => delayMs >= fromMs) ??
      this.delaysMs.at(-1)!
    );
  }

  private shortest(delayMs: number): number {
    return Math.max(1, Math.round(delayMs * (1 - this.jitter)));
  }

  private longest(delayMs: number): number {
    return Math.round(delayMs * (1 + this.jitter));
  }
}
