import { SetMetadata, UseInterceptors, applyDecorators } from '@nestjs/common';
import type { Isolation } from '../database/index.js';
import type { Duration } from '../duration/index.js';
import type { FingerprintSource } from './fingerprint.js';
import { IdempotencyInterceptor } from './idempotency.interceptor.js';
import type { KeySource } from './key.js';

export const IDEMPOTENT_HANDLER = 'idempotency:handler';
export const NATURALLY_IDEMPOTENT = 'idempotency:natural';

export interface IdempotentHandlerOptions<Payload = unknown> {
  /**
   * The stable name that scopes the keys. Default: service name and pattern,
   * `commissions/sale.completed`. Required for a handler with several patterns. Changing it forgets
   * every key that the handler has processed.
   */
  consumer?: string;
  /**
   * How long a key is kept, at least, of the time in which messages are being consumed: the window in
   * which a repeat is recognised. Default `'90d'`. The start refuses one that is shorter than the longest
   * redelivery, the consumer's delay and the reprocessing horizon together.
   */
  retention?: Duration;
  /**
   * How far back this handler's messages are published again: from an archive, by a producer that
   * repeats a month. Part of what the retention must cover. Default: REPROCESSING_HORIZON, `'60d'`.
   *
   * @example { retention: '400d', reprocessing: '366d' }
   */
  reprocessing?: Duration;
  /**
   * What is compared when a key comes back, to tell a repeat from another message under the same key.
   * Default: the whole payload. A function picks the fields that carry the intent; `false` compares
   * nothing, and takes every message with a known key for a repeat.
   */
  fingerprint?: FingerprintSource<Payload>;
  /** Default `'READ COMMITTED'`. Above it, a conflict with another transaction runs the handler again. */
  isolation?: Isolation;
  /** For the whole transaction up to COMMIT. Default `'60s'`. */
  timeout?: Duration;
}

export interface IdempotentHandlerMetadata {
  keyFrom: KeySource;
  options: IdempotentHandlerOptions;
}

/**
 * Makes a message handler's database effects happen once per business key. The handler runs inside a
 * transaction that first claims the key; both commit together or not at all. A repeat is acknowledged
 * without running the handler; a repeated request gets the reply that was stored.
 *
 * @param keyFrom where the business key is: a function of the payload, a dotted path, a list of paths
 * @throws at start, when an option is not usable; per message, `InvalidKeyError` and `KeyReuseError`
 *   go to the dead letters
 *
 * @example
 * \@EventPattern<string>('sale.completed')
 * \@IdempotentHandler<SaleCompleted>((sale) => sale.saleId)
 * async onSaleCompleted(@Payload() sale: SaleCompleted): Promise<void> {
 *   await this.commissions.post(sale);
 * }
 */
export function IdempotentHandler<Payload = unknown>(
  keyFrom: KeySource<Payload>,
  options: IdempotentHandlerOptions<Payload> = {},
): MethodDecorator {
  return applyDecorators(
    SetMetadata(IDEMPOTENT_HANDLER, { keyFrom, options }),
    UseInterceptors(IdempotencyInterceptor),
  );
}

/**
 * Says that running a message handler again is harmless, and why: it sets a value, or it only reads.
 * Such a handler gets no transaction and no key.
 *
 * @example \@NaturallyIdempotent('overwrites the price with the one in the message')
 */
export function NaturallyIdempotent(reason: string): MethodDecorator {
  return SetMetadata(NATURALLY_IDEMPOTENT, reason);
}
