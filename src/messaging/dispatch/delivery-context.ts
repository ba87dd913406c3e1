import { RmqContext } from '@nestjs/microservices';
import type { ConsumeMessage } from 'amqplib';

/** One run of one handler for one delivery: what a handler gets as `@Ctx()`. */
export class DeliveryContext extends RmqContext {
  /** Guards have let the message pass. */
  entered = false;
  /** What the handler, its pipes or its interceptors threw, before any exception filter saw it. */
  failure: { error: unknown } | undefined;
  /** The name that scopes the handler's keys, when it has any. */
  consumer: string | undefined;

  constructor(
    readonly message: ConsumeMessage,
    pattern: string,
  ) {
    super([message, NO_CHANNEL, pattern]);
  }
}

/** By await and by JSON.stringify, for instance when a handler logs its context. */
const ASKED_BY_THE_LANGUAGE = new Set(['then', 'toJSON']);

/** Settlement has one owner. A second acknowledgement would close the channel with all that is on it. */
const NO_CHANNEL = new Proxy(
  {},
  {
    get: (_, property) => {
      if (typeof property === 'symbol' || ASKED_BY_THE_LANGUAGE.has(property)) {
        return undefined;
      }
      throw new Error(
        `channel.${property}() in a handler: messages are settled after it, once. ` +
          'Return to acknowledge, throw to retry, throw PermanentError to dead-letter.',
      );
    },
  },
);
