/** What a handler's retention is made of, in milliseconds. */
export interface RetentionTerms {
  /** How long its keys are kept. */
  retentionMs: number;
  /** How long the broker can go on delivering a message: retries, their waits, crashes. */
  redeliveryMs: number;
  /** How long the service may be down or behind, and a dead letter may wait. */
  consumerDelayMs: number;
  /** How far back messages are published again. */
  reprocessingMs: number;
}

export interface RetentionVerdict {
  holds: boolean;
  /** The three terms together: the age at which the last repeat can come, in milliseconds. */
  neededMs: number;
  /** What the retention has more than it needs; negative when it does not hold. */
  spareMs: number;
}

/**
 * The rule: a key outlives the last repeat of its message. The three terms add up, because one message can meet
 * them one after another: it is published again on the last day of the horizon, waits for a service that is
 * down, and is then tried as often as it may be.
 *
 * @example
 * retentionRule({ retentionMs: 30 * DAY, redeliveryMs: 0, consumerDelayMs: 7 * DAY, reprocessingMs: 60 * DAY })
 * // { holds: false, neededMs: 67 * DAY, spareMs: -37 * DAY }
 */
export function retentionRule({
  retentionMs,
  redeliveryMs,
  consumerDelayMs,
  reprocessingMs,
}: RetentionTerms): RetentionVerdict {
  const neededMs = redeliveryMs + consumerDelayMs + reprocessingMs;
  return { holds: retentionMs >= neededMs, neededMs, spareMs: retentionMs - neededMs };
}
