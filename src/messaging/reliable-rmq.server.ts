import type { EventEmitter } from 'node:events';
import { Inject, Injectable } from '@nestjs/common';
import { ServerRMQ, type MessageHandler } from '@nestjs/microservices';
import type { ConfirmChannel } from 'amqplib';
import { atMost } from './at-most.js';
import { ConfirmedPublisher } from './confirmed-publisher.js';
import type { Delivery } from './delivery.js';
import { Dispatcher } from './dispatcher.js';
import { messageOf } from './error-text.js';
import { TopologyError } from './errors.js';
import { runHandler, type RunHandler } from './handler-run.js';
import { InFlight } from './in-flight.js';
import {
  CLOSE_TIMEOUT_MS,
  HEARTBEAT_SECONDS,
  MESSAGING_OPTIONS,
  RECONNECT_SECONDS,
  type MessagingOptions,
} from './messaging.options.js';
import { Outage } from './outage.js';
import { QueueConsumer } from './queue-consumer.js';
import { Routes } from './routes.js';
import { Settlement } from './settlement.js';
import { declareTopology, type TopologyChannel } from './topology.js';

type ListenCallback = (error?: unknown) => void;

/**
 * Nest's RabbitMQ transport with its settlement replaced: each message is settled once, after all its
 * handlers have ended, and so after their transactions have committed. Nest's own never acknowledges,
 * loses what has no handler, and stays deaf when the broker cancels it.
 */
@Injectable()
export class ReliableRmqServer extends ServerRMQ {
  private readonly routes = new Routes();
  private readonly inFlight = new InFlight();
  private readonly consumer: QueueConsumer;
  private readonly outage: Outage;
  private readonly dispatcher: Dispatcher;
  private readonly settlement: Settlement;
  /** Whoever waits for the start. Undefined when it has ended. */
  private starting: ListenCallback | undefined;
  private closed: Promise<void> | undefined;

  constructor(
    @Inject(MESSAGING_OPTIONS) private readonly messaging: MessagingOptions,
    publisher: ConfirmedPublisher,
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
    this.consumer = new QueueConsumer({
      queue: messaging.queue,
      concurrency: messaging.concurrency,
      onDelivery: (delivery) => this.inFlight.add(this.process(delivery)),
      onCancelled: () => this.onCancelled(),
    });
    this.outage = new Outage(this.consumer, messaging.isRecovered);
    this.dispatcher = new Dispatcher(this.routes, publisher, messaging.classify, this.runHandler);
    this.settlement = new Settlement(messaging, publisher, this.outage, () =>
      this.declare(this.channel as TopologyChannel),
    );
  }

  /** Why messages are not being consumed right now, or undefined when they are. */
  get notConsumingBecause(): string | undefined {
    if (this.outage.active) {
      return 'paused during an outage';
    }
    return this.consumer.consuming ? undefined : 'not connected to the queue';
  }

  override addHandler(pattern: unknown, handler: MessageHandler, isEvent = false): void {
    // Not chained by `next` as Nest does it: each handler of a message runs and fails by itself.
    this.routes.add(pattern, handler, isEvent);
  }

  override async listen(callback: ListenCallback): Promise<void> {
    this.starting = callback;
    await super.listen((error?: unknown) => this.endStart(error));
    // Nest has just made its own listener for this, which creates the channel. The channel tells of a
    // connection that broke while it opened; unheard, that is an unhandled rejection.
    (this.server as EventEmitter | null)?.once('connect', () => {
      (this.channel as EventEmitter | null)?.on('error', (error: Error) => {
        this.logger.warn(`The consuming channel failed: ${messageOf(error)}`);
      });
    });
  }

  /** Runs for every new channel, also after a reconnect. Thrown errors would be unhandled rejections. */
  override async setupChannel(channel: ConfirmChannel, callback: ListenCallback): Promise<void> {
    try {
      await this.declare(channel);
      await this.consumer.attach(channel);
      callback();
    } catch (error) {
      if (this.starting !== undefined && isRefusal(error)) {
        // Nest's callback would not pass the error on.
        this.endStart(error);
        return;
      }
      // The connection has closed, or the refused declaration has closed it; the next one tries again.
      this.logger.error(error);
    }
  }

  private declare(channel: TopologyChannel): Promise<void> {
    return declareTopology(channel, { ...this.messaging, patterns: this.routes.patterns() });
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
    await this.inFlight.drain(this.messaging.shutdownGraceMs, this.consumer.stop());
    await atMost(CLOSE_TIMEOUT_MS, super.close());
  }

  /** Never rejects. */
  private async process(delivery: Delivery): Promise<void> {
    try {
      const failure = await this.dispatcher.dispatch(delivery.message);
      if (failure === undefined) {
        this.settlement.acknowledge(delivery);
      } else {
        await this.settlement.fail(delivery, failure);
      }
    } catch (error) {
      // The channel is gone, and its messages are being delivered again.
      this.logger.warn(`Not settled, will be redelivered: ${String(error)}`);
    }
  }

  private readonly runHandler: RunHandler = (handler, data, context) =>
    new Promise((resolve, reject) => {
      this.runWithProcessingHooks(context, async (end) => {
        await runHandler(handler, data, context).then(resolve, reject);
        end();
      });
    });

  private onCancelled(): void {
    this.logger.error(
      `The broker cancelled the consumer of ${this.messaging.queue}; reconnecting.`,
    );
    (this.server as { reconnect(): void } | null)?.reconnect();
  }
}

/** The broker has answered, and will answer the same the next time; the connection was not just lost. */
function isRefusal(error: unknown): boolean {
  return error instanceof TopologyError || typeof (error as { code?: unknown }).code === 'number';
}
