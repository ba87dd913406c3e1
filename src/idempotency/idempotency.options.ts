export const IDEMPOTENCY_OPTIONS = Symbol('IDEMPOTENCY_OPTIONS');

export interface IdempotencyOptions {
  /** Scopes the default consumer names: `commissions/sale.completed`. */
  serviceName: string;
  /** Connections in the pool. */
  poolSize: number;
  /** What brings the messages. Asked once at start, when it knows every handler. */
  transport: () => Transport;
}

export interface Transport {
  /** Messages that are in work at the same time; each holds one connection. */
  concurrency: number;
  /** What is wrong with the handlers' options for it, with what to do about it. */
  faults: readonly string[];
}
