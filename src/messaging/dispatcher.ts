import { Logger } from '@nestjs/common';
import { RpcException, type MessageHandler } from '@nestjs/microservices';
import type { ConsumeMessage } from 'amqplib';
import type { ConfirmedPublisher } from './confirmed-publisher.js';
import { DeliveryContext } from './delivery-context.js';
import { UnprocessableMessageError } from './errors.js';
import { messageOf } from './error-text.js';
import { decisive, failureOf, type Classify, type Failure } from './failure.js';
import type { RunHandler } from './handler-run.js';
import { parseMessage, type IncomingMessage } from './incoming-message.js';
import { routeOf, type Match, type Routes } from './routes.js';

/** Takes a message to its handlers, and tells how they ended. */
export class Dispatcher {
  private readonly logger = new Logger(Dispatcher.name);

  constructor(
    private readonly routes: Routes,
    private readonly publisher: ConfirmedPublisher,
    private readonly classify: Classify,
    private readonly runHandler: RunHandler,
  ) {}

  /**
   * @returns undefined when every handler has ended well, else the failure that decides what becomes of
   *   the message
   */
  async dispatch(message: ConsumeMessage): Promise<Failure | undefined> {
    try {
      const incoming = parseMessage(message);
      const { pattern, handlers, request } = this.route(incoming);
      const replyTo = message.properties.replyTo as string | undefined;
      if (request === undefined || replyTo === undefined) {
        return decisive(await this.runAll(handlers, incoming.data, message, pattern));
      }
      const failure = await this.answer(
        request,
        incoming,
        new DeliveryContext(message, pattern),
        replyTo,
      );
      const events = handlers.filter((handler) => handler !== request);
      return failure ?? decisive(await this.runAll(events, incoming.data, message, pattern));
    } catch (error) {
      return failureOf(error, this.classify);
    }
  }

  private route({ patterns }: IncomingMessage): Match & { pattern: string } {
    const candidates = patterns.filter((pattern) => pattern !== undefined).map(routeOf);
    for (const pattern of candidates) {
      const match = this.routes.match(pattern);
      if (match.handlers.length > 0) {
        return { pattern, ...match };
      }
    }
    throw new UnprocessableMessageError('no-handler', `no handler for ${candidates.join(' or ')}`);
  }

  /**
   * One after another, so that a message holds one connection however many handlers it has. Each fails
   * by itself: those that succeed now are duplicates when the message comes back for the others.
   */
  private async runAll(
    handlers: MessageHandler[],
    data: unknown,
    message: ConsumeMessage,
    pattern: string,
  ): Promise<Failure[]> {
    const failures: Failure[] = [];
    for (const handler of handlers) {
      try {
        await this.runHandler(handler, data, new DeliveryContext(message, pattern));
      } catch (error) {
        failures.push(failureOf(error, this.classify));
      }
    }
    return failures;
  }

  /** A request is answered once, with its result or its error: to try again is for the asker to decide. */
  private async answer(
    handler: MessageHandler,
    { data, requestId }: IncomingMessage,
    context: DeliveryContext,
    replyTo: string,
  ): Promise<Failure | undefined> {
    const bodyOf = (reply: object): string =>
      JSON.stringify({ id: requestId, ...reply, isDisposed: true });
    let body: string;
    try {
      body = bodyOf({ response: await this.runHandler(handler, data, context) });
    } catch (error) {
      const failure = failureOf(error, this.classify);
      if (failure.kind === 'outage') {
        return failure;
      }
      this.logger.warn(`Request ${context.getPattern()} failed: ${messageOf(error)}`);
      body = bodyOf({ err: errorForAsker(failure) });
    }
    const correlationId = context.message.properties.correlationId as string | undefined;
    await this.publisher.reply(replyTo, correlationId, Buffer.from(body));
    return undefined;
  }
}

/** What is wrong with the request is the asker's business; what is wrong in here is not. */
function errorForAsker({ kind, error }: Failure): unknown {
  if (error instanceof RpcException) {
    return error.getError();
  }
  return {
    status: 'error',
    message: kind === 'permanent' ? messageOf(error) : 'Internal server error',
  };
}
