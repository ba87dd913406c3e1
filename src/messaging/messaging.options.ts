import type { Classify } from './settle/failure.js';

export const MESSAGING_OPTIONS = Symbol('MESSAGING_OPTIONS');

export interface MessagingOptions {
  url: string;
  /** The service's queue; its retry and dead-letter queues are named after it. */
  queue: string;
  /** The topic exchange that the queue is bound to and that events are published on. */
  exchange: string;
  /** Messages of a queue in work at the same time, unless its decorator says otherwise. */
  concurrency: number;
  /** After the n-th failure the message waits for the n-th delay; after the last it is dead-lettered. */
  retryDelaysMs: readonly number[];
  /** How far a delay may be from the scheduled one, as a part of it: 0.2 for a fifth. */
  retryJitter: number;
  /** Deliveries that may end with the process or its connection before the message is dead-lettered. */
  crashLimit: number;
  /** How long a stop waits for handlers that have started. */
  shutdownGraceMs: number;
  /** What an error of another folder says about its message. */
  classify: Classify;
  /** Told of each dead letter, by the consumer whose handler failed. Must not throw. */
  onDeadLetter?: (consumer: string) => void;
  /** Whether what was away is back. Asked again and again during an outage; may reject. */
  isRecovered: () => Promise<boolean>;
}

/** Both connections of the process. */
export const HEARTBEAT_SECONDS = 10;
export const RECONNECT_SECONDS = 1;
/** A broker that does not answer a close must not hold up the stop: it sees the connection end anyway. */
export const CLOSE_TIMEOUT_MS = 2_000;
