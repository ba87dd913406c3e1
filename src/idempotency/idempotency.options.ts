import type { Purgeable } from './retention/purgeable.js';

export const IDEMPOTENCY_OPTIONS = Symbol('IDEMPOTENCY_OPTIONS');

export interface IdempotencyOptions {
  /** Scopes the default consumer names: `commissions/sale.completed`. */
  serviceName: string;
  /** Connections in the pool. */
  poolSize: number;
  /** How long the service may be down or behind, and a dead letter may wait, in milliseconds. */
  consumerDelayMs: number;
  /** How far back messages are published again, unless a handler says otherwise, in milliseconds. */
  reprocessingMs: number;
  /** From one purge of expired keys to the next, in milliseconds, at most a day. */
  purgeIntervalMs: number;
  /** Whether the messages of a pattern are being consumed right now. */
  isConsuming: (pattern: string) => boolean;
  /** Further tables that are purged together with the keys. */
  purgeable?: readonly Purgeable[];
  purge?: {
    /** Rows in one transaction; 1,000 unless set. */
    batchRows?: number;
    /** After which a run leaves the rest to the next one, in milliseconds; five minutes unless set. */
    budgetMs?: number;
  };
  /** What brings the messages. Asked once at start, when it knows every handler. */
  transport: () => Transport;
}

export interface Transport {
  /** Messages that are in work at the same time; each holds one connection. */
  concurrency: number;
  /** What is wrong with the handlers' options for it, with what to do about it. */
  faults: readonly string[];
  /** How long the messages of a pattern can go on being delivered, while everything is up. */
  redelivery: (pattern: string) => Redelivery;
}

export interface Redelivery {
  /** Between its runs, in milliseconds. */
  waitsMs: number;
  /** Times it is run at most. */
  runs: number;
  /** Of the handlers that run for it, one after another, its own included. */
  patterns: readonly string[];
}
