/**
 * Thrown by a handler whose message will fail every time: an unknown product, a sale that cannot be.
 * The message goes to the dead letters at once, with this error's message as the explanation.
 *
 * @example throw new PermanentError(`unknown product type ${sale.productType}`);
 */
export class PermanentError extends Error {
  override readonly name: string = 'PermanentError';
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
