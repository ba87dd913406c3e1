/**
 * Thrown by a handler whose message will fail every time: an unknown product, a sale that cannot be.
 * The message goes to the dead letters at once, with this error's message as the explanation.
 *
 * @example throw new PermanentError(`unknown product type ${sale.productType}`);
 */
export class PermanentError extends Error {
  override readonly name: string = 'PermanentError';
}

/**
 * Thrown by a handler that knows when another run makes sense: what it needs says "not before".
 * Counts as an attempt, so that it cannot go on for ever.
 *
 * The wait is the shortest of the service's delays that is long enough, or else the longest.
 *
 * @example throw new RetryLaterError(60_000, 'the rate limit is used up');
 */
export class RetryLaterError extends Error {
  override readonly name: string = 'RetryLaterError';

  /** @param delayMs milliseconds, finite and not negative */
  constructor(
    readonly delayMs: number,
    message = `try again in ${delayMs} ms`,
    options?: ErrorOptions,
  ) {
    super(message, options);
    if (!Number.isFinite(delayMs) || delayMs < 0) {
      throw new RangeError(`RetryLaterError needs a delay in milliseconds, got ${delayMs}.`);
    }
  }
}

/** The options of handlers' decorators cannot be used together, or at all. Lists every fault. */
export class HandlerOptionsError extends Error {
  override readonly name = 'HandlerOptionsError';

  constructor(readonly faults: readonly string[]) {
    super(faults.join('\n'));
  }
}

/** The process ended while the message was in work, again and again. */
export class CrashedConsumerError extends Error {
  override readonly name = 'CrashedConsumerError';

  constructor(deliveries: number) {
    super(
      `delivered ${deliveries} times without an end: the process or its connection ended each time`,
    );
  }
}

/** Why a message never reached a handler. Becomes the dead letter's reason. */
export type UnprocessableReason =
  | 'not-json'
  | 'too-large'
  | 'too-deep'
  | 'unsafe-properties'
  | 'unsupported-encoding'
  | 'not-decodable'
  | 'unsupported-content-type'
  | 'invalid-cloud-event'
  | 'no-handler'
  | 'guard-refused';

/** The message itself is at fault; no handler has run. */
export class UnprocessableMessageError extends Error {
  override readonly name = 'UnprocessableMessageError';

  constructor(
    readonly reason: UnprocessableReason,
    message: string,
  ) {
    super(message);
  }
}

/** The message is in a queue that its handler has left. */
export class MisplacedMessageError extends Error {
  override readonly name = 'MisplacedMessageError';

  constructor(
    readonly queue: string,
    pattern: string,
  ) {
    super(`the handler of ${pattern} consumes the queue ${queue}`);
  }
}

/** The broker has no queue for a message that was to reach one. It was not stored anywhere. */
export class UnroutableMessageError extends Error {
  override readonly name = 'UnroutableMessageError';

  constructor(exchange: string, routingKey: string) {
    super(
      `No queue takes ${routingKey} from ${exchange === '' ? 'the default exchange' : exchange}: ` +
        'start the consumer that binds it, or check the routing key.',
    );
  }
}

/** A queue or exchange exists with other arguments than the service declares. */
export class TopologyError extends Error {
  override readonly name = 'TopologyError';

  constructor(cause: Error) {
    super(
      `RabbitMQ refuses the service's topology: ${cause.message}. A queue or exchange of that name ` +
        'exists with other arguments: delete it when it is empty, or set another SERVICE_NAME or EVENTS_EXCHANGE.',
      { cause },
    );
  }
}
