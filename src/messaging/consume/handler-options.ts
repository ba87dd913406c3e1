import { PATTERN_EXTRAS_METADATA } from '@nestjs/microservices/constants.js';

export interface RetryOptions {
  /**
   * Milliseconds to wait after the first, the second, … failed attempt; the last one repeats when there
   * are more attempts. Default: the service's RETRY_DELAYS.
   */
  delays?: readonly number[];
  /** Runs in all; 1 is no retry. Default: one more than there are delays. */
  attempts?: number;
}

export interface QueueOptions {
  /** Messages of this queue in work at the same time, in each process. Default: CONSUMER_CONCURRENCY. */
  concurrency?: number;
}

/** A queue of a handler's own, as its decorator describes it. */
export interface OwnQueue {
  name: string;
  ordered: boolean;
  concurrency: number | undefined;
}

/** What the decorators of this folder say about a handler. */
export interface HandlerOptions {
  retry?: RetryOptions;
  queue?: OwnQueue;
}

/** Nest hands a handler's extras to the transport, which is where these options are needed. */
const HANDLER_OPTIONS = Symbol('HANDLER_OPTIONS');

/**
 * A retry schedule for this handler alone. Checked at start.
 *
 * @example
 * @EventPattern<string>('payout.requested')
 * @IdempotentHandler<Payout>((payout) => payout.payoutId)
 * @Retry({ delays: [2_000, 60_000], attempts: 5 })
 * async onPayout(@Payload() payout: Payout): Promise<void> { … }
 */
export const Retry = (retry: RetryOptions): MethodDecorator => describe({ retry });

/**
 * Puts a handler on a queue of its own, `<service>.<name>`, so that a slow one does not hold up the
 * others. Handlers that name the same queue share it.
 *
 * @param name letters, digits, `-` and `_`
 * @example @ConsumeFrom('reports', { concurrency: 2 })
 */
export const ConsumeFrom = (name: string, options: QueueOptions = {}): MethodDecorator =>
  describe({ queue: { name, ordered: false, concurrency: options.concurrency } });

/**
 * Puts a handler on a queue of its own whose messages are processed in the order in which they were
 * published: one at a time over all replicas, and a message that fails is tried again before the next
 * one is taken. Its retries hold up the queue; that is the price of order.
 *
 * @param name letters, digits, `-` and `_`
 * @example @Ordered('ledger')
 */
export const Ordered = (name: string): MethodDecorator =>
  describe({ queue: { name, ordered: true, concurrency: 1 } });

/** What the decorators wrote into the extras that Nest passes with a handler. */
export function handlerOptionsOf(extras: Record<PropertyKey, unknown> | undefined): HandlerOptions {
  return (extras?.[HANDLER_OPTIONS] as HandlerOptions | undefined) ?? {};
}

function describe(options: HandlerOptions): MethodDecorator {
  return (_target, _name, descriptor) => {
    const method = descriptor.value as object;
    const extras = (Reflect.getMetadata(PATTERN_EXTRAS_METADATA, method) ?? {}) as Record<
      PropertyKey,
      unknown
    >;
    const merged = { ...handlerOptionsOf(extras), ...options };
    Reflect.defineMetadata(
      PATTERN_EXTRAS_METADATA,
      { ...extras, [HANDLER_OPTIONS]: merged },
      method,
    );
  };
}
