export const IDEMPOTENCY_OPTIONS = Symbol('IDEMPOTENCY_OPTIONS');

export interface IdempotencyOptions {
  /** Scopes the default consumer names: `commissions/sale.completed`. */
  serviceName: string;
  /** Messages that are in work at the same time; each holds one connection. */
  concurrency: number;
  /** Connections in the pool. */
  poolSize: number;
}
