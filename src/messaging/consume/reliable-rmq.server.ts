import type { EventEmitter } from 'node:events';
import { Inject, Injectable } from '@nestjs/common';
import { ServerRMQ, type MessageHandler } from '@nestjs/microservices';
import type { AmqpConnectionManager } from 'amqp-connection-manager';
import type { ChannelModel, ConfirmChannel } from 'amqplib';
import { atMost } from '../at-most.js';
import { AttemptNotes } from './attempt-notes.js';
import { ConcurrentQueue } from './concurrent-queue.js';
import { ConfirmedPublisher } from '../publish/confirmed-publisher.js';
import { Copier } from '../settle/copier.js';
import type { Delivery } from './delivery.js';
import { Dispatcher } from '../dispatch/dispatcher.js';
import { messageOf } from '../error-text.js';
import { HandlerOptionsError, TopologyError } from '../errors.js';
import { handlerOptionsOf } from './handler-options.js';
import { runHandler, type RunHandler } from '../dispatch/handler-run.js';
import { InFlight } from './in-flight.js';
import {
  CLOSE_TIMEOUT_MS,
  HEARTBEAT_SECONDS,
  MESSAGING_OPTIONS,
  RECONNECT_SECONDS,
  type MessagingOptions,
} from '../messaging.options.js';
import { OrderedQueue } from './ordered-queue.js';
import { Outage } from './outage.js';
import { planQueues, type Plan, type QueuePlan, type RegisteredHandler } from './queue-plan.js';
import { Routes } from '../dispatch/routes.js';
import type { QueueParts, ServiceQueue } from './service-queue.js';
import { Settlement } from '../settle/settlement.js';
import { declareQueue } from './topology.js';

type ListenCallback = (error?: unknown) => void;

/**
 * Nest's RabbitMQ transport with its consuming and settling replaced: each message is settled once,
 * after all its handlers have ended, and so after their transactions have committed. Nest's own never
 * acknowledges, loses what has no handler, and stays deaf when the broker cancels it.
 */
@Injectable()
export class ReliableRmqServer extends ServerRMQ {
  private readonly handlers: RegisteredHandler[] = [];
  private readonly inFlight = new InFlight();
  private readonly outage: Outage;
  private queues: ServiceQueue[] = [];
  /** The patterns of each of the queues. */
  private readonly patterns = new Map<ServiceQueue, Set<string>>();
  /** Whoever waits for the start. Undefined when it has ended. */
  private starting: ListenCallback | undefined;
  private closed: Promise<void> | undefined;

  constructor(
    @Inject(MESSAGING_OPTIONS) private readonly messaging: MessagingOptions,
    private readonly publisher: ConfirmedPublisher,
  ) {
    super({
      urls: [messaging.url],
      queue: messaging.queue,
      noAck: false,
      socketOptions: {
        heartbeatIntervalInSeconds: HEARTBEAT_SECONDS,
        reconnectTimeInSeconds: RECONNECT_SECONDS,
      },
    });
    this.outage = new Outage(() => this.queues, messaging.isRecovered);
  }

  /** Why messages are not being consumed right now, or undefined when they are. */
  get notConsumingBecause(): string | undefined {
    if (this.outage.because !== undefined) {
      return `paused during an outage: ${this.outage.because}`;
    }
    if (this.queues.length === 0) {
      return 'not connected to the queue yet';
    }
    return this.queues
      .map((queue) => queue.notConsumingBecause)
      .find((reason) => reason !== undefined);
  }

  /** Whether the messages of a pattern are being taken right now, from every queue that has them. */
  isConsuming(pattern: string): boolean {
    const having = this.queues.filter((queue) => this.patterns.get(queue)?.has(pattern));
    return (
      this.outage.because === undefined &&
      having.length > 0 &&
      having.every((queue) => queue.notConsumingBecause === undefined)
    );
  }

  /** The queues that the handlers' decorators ask for, and what is wrong with them. */
  plan(): Plan {
    return planQueues(this.handlers, this.messaging);
  }

  override addHandler(
    pattern: unknown,
    handler: MessageHandler,
    isEvent = false,
    extras: Record<PropertyKey, unknown> = {},
  ): void {
    // Not chained by `next` as Nest does it: each handler of a message runs and fails by itself.
    this.handlers.push({ pattern, handler, isEvent, options: handlerOptionsOf(extras) });
  }

  override async listen(callback: ListenCallback): Promise<void> {
    const { queues, faults } = this.plan();
    if (faults.length > 0) {
      callback(new HandlerOptionsError(faults));
      return;
    }
    this.queues = queues.map((plan) => {
      const queue = this.queueOf(plan);
      this.patterns.set(queue, new Set(plan.handlers.map((handler) => handler.pattern)));
      return queue;
    });
    this.starting = callback;
    await super.listen((error?: unknown) => this.endStart(error));
    const server = this.server as unknown as AmqpConnectionManager | null;
    // Nest has just made its own listener for this, which creates the channel. The channel tells of a
    // connection that broke while it opened; unheard, that is an unhandled rejection.
    server?.once('connect', () => {
      (this.channel as EventEmitter | null)?.on('error', (error: Error) => {
        this.logger.warn(`The connection broke while it opened: ${messageOf(error)}`);
      });
    });
    // Nest's own line about it does not say why.
    server?.on('disconnect', ({ err }) => {
      this.logger.error(`The connection to RabbitMQ has ended: ${messageOf(err)}`);
    });
  }

  /** Runs on every new connection. Thrown errors would be unhandled rejections. */
  override async setupChannel(_: ConfirmChannel, callback: ListenCallback): Promise<void> {
    // Nest's own channel stays unused: each consumer has one, so that none can close another's.
    const { connection } = this.server as unknown as AmqpConnectionManager;
    try {
      await Promise.all(this.queues.map((queue) => queue.attach(connection as ChannelModel)));
      callback();
    } catch (error) {
      if (this.starting !== undefined && isRefusal(error)) {
        // Nest's callback would not pass the error on.
        this.endStart(error);
        return;
      }
      // The connection has closed, or the queue tries it again by itself.
      this.logger.error(messageOf(error));
    }
  }

  private queueOf(plan: QueuePlan): ServiceQueue {
    const {
      queue: service,
      exchange,
      crashLimit,
      classify,
      retryDelaysMs,
      onDeadLetter,
    } = this.messaging;
    const topology = { service, exchange };
    const schedule = { delaysMs: retryDelaysMs, attempts: retryDelaysMs.length + 1 };
    const { name: queue, delays, elsewhere } = plan;
    const copier = new Copier(this.publisher, () => this.redeclare(plan));
    const parts: QueueParts = {
      plan,
      topology,
      crashLimit,
      dispatcher: new Dispatcher(
        { queue, service, classify, elsewhere, schedule },
        new Routes(plan.handlers),
        this.publisher,
        this.runHandler,
      ),
      settlement: new Settlement({ queue, service, delays, onDeadLetter }, copier),
      outage: this.outage,
      run: (delivery, processing) =>
        this.inFlight.add(processing.catch((error) => this.notSettled(delivery, error))),
    };
    return plan.ordered
      ? new OrderedQueue(parts, new AttemptNotes(queue, this.publisher))
      : new ConcurrentQueue(parts);
  }

  private async redeclare(plan: QueuePlan): Promise<void> {
    const { connection } = this.server as unknown as AmqpConnectionManager;
    const channel = await (connection as ChannelModel).createChannel();
    channel.on('error', () => undefined);
    const { queue: service, exchange } = this.messaging;
    await declareQueue(channel, plan, { service, exchange });
    await channel.close();
  }

  private endStart(error?: unknown): void {
    const { starting } = this;
    this.starting = undefined;
    starting?.(error);
  }

  /**
   * Cancels, waits for what has started, then gives up the connection: the rest is redelivered. Asked
   * twice, by main and then by Nest, it waits once.
   */
  override close(): Promise<void> {
    return (this.closed ??= this.drainAndClose());
  }

  private async drainAndClose(): Promise<void> {
    this.outage.stop();
    const noMore = Promise.all(this.queues.map((queue) => queue.stop()));
    await this.inFlight.drain(this.messaging.shutdownGraceMs, noMore);
    await atMost(CLOSE_TIMEOUT_MS, super.close());
  }

  /** The channel is gone as a rule, and its messages are being delivered again. */
  private notSettled(delivery: Delivery, error: unknown): void {
    this.logger.warn(`Not settled, will be redelivered: ${messageOf(error)}`);
    try {
      // Should the channel be there after all. The broker counts it, so it cannot go on for ever.
      delivery.handBack();
    } catch {
      // It is gone.
    }
  }

  private readonly runHandler: RunHandler = (handler, data, context) =>
    new Promise((resolve, reject) => {
      this.runWithProcessingHooks(context, async (end) => {
        await runHandler(handler, data, context).then(resolve, reject);
        end();
      });
    });
}

/** The broker has answered, and will answer the same the next time; the connection was not just lost. */
function isRefusal(error: unknown): boolean {
  return error instanceof TopologyError || typeof (error as { code?: unknown }).code === 'number';
}
