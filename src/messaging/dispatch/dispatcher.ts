import { Logger } from '@nestjs/common';
import { RpcException } from '@nestjs/microservices';
import type { ConsumeMessage } from 'amqplib';
import type { ConfirmedPublisher } from '../publish/confirmed-publisher.js';
import { DeliveryContext } from './delivery-context.js';
import { MisplacedMessageError, UnprocessableMessageError } from '../errors.js';
import { messageOf } from '../error-text.js';
import {
  decisive,
  failureOf,
  type Classify,
  type Failed,
  type Failure,
} from '../settle/failure.js';
import type { RunHandler } from './handler-run.js';
import { parseMessage, type IncomingMessage } from './incoming-message.js';
import type { PlannedHandler, QueuePlan } from '../consume/queue-plan.js';
import type { RetrySchedule } from '../settle/retry-policy.js';
import { routeOf, Routes, type Match } from './routes.js';

export interface DispatcherOptions {
  queue: string;
  /** Scopes the default consumer names: `commissions/sale.completed`. */
  service: string;
  classify: Classify;
  /** Handlers on the service's other queues. */
  elsewhere: QueuePlan['elsewhere'];
  /** For a message that fails before it has a handler. */
  schedule: RetrySchedule;
}

/** Takes a message to its handlers, and tells how they ended. */
export class Dispatcher {
  private readonly logger = new Logger(Dispatcher.name);
  private readonly elsewhere: Routes;

  constructor(
    private readonly options: DispatcherOptions,
    private readonly routes: Routes,
    private readonly publisher: ConfirmedPublisher,
    private readonly runHandler: RunHandler,
  ) {
    this.elsewhere = new Routes(options.elsewhere.map(({ handler }) => handler));
  }

  /**
   * @returns undefined when every handler has ended well, else the failure that decides what becomes of
   *   the message
   */
  async dispatch(message: ConsumeMessage): Promise<Failed | undefined> {
    try {
      const incoming = parseMessage(message);
      const { pattern, handlers, request } = this.route(incoming);
      const run = (some: PlannedHandler[]): Promise<Failed | undefined> =>
        this.runAll(some, incoming.data, message, pattern);
      const replyTo = message.properties.replyTo as string | undefined;
      if (request === undefined || replyTo === undefined) {
        return await run(handlers);
      }
      const context = new DeliveryContext(message, pattern);
      const failed = await this.answer(request, incoming, context, replyTo);
      return failed ?? (await run(handlers.filter((handler) => handler !== request)));
    } catch (error) {
      const { classify, queue: consumer, schedule } = this.options;
      return { failure: failureOf(error, classify), consumer, schedule };
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
    this.throwIfMisplaced(candidates);
    throw new UnprocessableMessageError(
      'no-handler',
      `no handler on the queue ${this.options.queue} for ${candidates.join(' or ')}`,
    );
  }

  /** A handler that has moved leaves messages behind: waiting, or in a delay queue. */
  private throwIfMisplaced(candidates: string[]): void {
    for (const pattern of candidates) {
      const [other] = this.elsewhere.match(pattern).handlers;
      const found = this.options.elsewhere.find(({ handler }) => handler === other);
      if (found !== undefined) {
        throw new MisplacedMessageError(found.queue, pattern);
      }
    }
  }

  /**
   * One after another, so that a message holds one connection however many handlers it has. Each fails
   * by itself: those that succeed now are duplicates when the message comes back for the others.
   */
  private async runAll(
    handlers: PlannedHandler[],
    data: unknown,
    message: ConsumeMessage,
    pattern: string,
  ): Promise<Failed | undefined> {
    const failed: Failed[] = [];
    for (const planned of handlers) {
      const context = new DeliveryContext(message, pattern);
      try {
        await this.runHandler(planned.handler, data, context);
      } catch (error) {
        failed.push(this.failed(error, planned, context));
      }
    }
    return decisive(failed);
  }

  private failed(error: unknown, planned: PlannedHandler, { consumer }: DeliveryContext): Failed {
    return {
      failure: failureOf(error, this.options.classify),
      consumer: consumer ?? `${this.options.service}/${planned.pattern}`,
      schedule: planned.schedule,
    };
  }

  /** A request is answered once, with its result or its error: to try again is for the asker to decide. */
  private async answer(
    planned: PlannedHandler,
    { data, requestId }: IncomingMessage,
    context: DeliveryContext,
    replyTo: string,
  ): Promise<Failed | undefined> {
    const bodyOf = (reply: object): string =>
      JSON.stringify({ id: requestId, ...reply, isDisposed: true });
    let body: string;
    try {
      body = bodyOf({ response: await this.runHandler(planned.handler, data, context) });
    } catch (error) {
      const failed = this.failed(error, planned, context);
      if (failed.failure.kind === 'outage') {
        return failed;
      }
      this.logger.warn(`Request ${context.getPattern()} failed: ${messageOf(error)}`);
      body = bodyOf({ err: errorForAsker(failed.failure) });
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
