import { Logger } from '@nestjs/common';
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import { Delivery, DeliveryChannel } from './delivery.js';
import { messageOf } from '../error-text.js';

const FIRST_REOPEN_MS = 250;
const LONGEST_REOPEN_MS = 15_000;

export interface QueueConsumerOptions {
  queue: string;
  concurrency: number;
  /** Declares what is consumed, on every new channel before it consumes. */
  declare: (channel: Channel) => Promise<void>;
  onDelivery: (delivery: Delivery) => void;
}

/**
 * One consumer of one queue, on a channel of its own: what closes that channel, or deletes the queue,
 * concerns no other. It comes back by itself, as long as there is a connection.
 */
export class QueueConsumer {
  private readonly logger = new Logger(QueueConsumer.name);
  private connection: ChannelModel | undefined;
  private current: DeliveryChannel | undefined;
  private tag: string | undefined;
  private paused = false;
  private stopped = false;
  private adjusted: Promise<void> = Promise.resolve();
  private reopenMs = FIRST_REOPEN_MS;
  private trouble: string | undefined;

  constructor(private readonly options: QueueConsumerOptions) {}

  /** Why no messages are being delivered, or undefined when they are. */
  get notConsumingBecause(): string | undefined {
    return this.tag === undefined
      ? `not connected to the queue ${this.options.queue}${this.trouble ?? ''}`
      : undefined;
  }

  /**
   * Uses a new connection; the one before it is gone, and its consumer with it.
   *
   * @throws what the broker answered; it is tried again all the same
   */
  async attach(connection: ChannelModel): Promise<void> {
    this.connection = connection;
    this.current = undefined;
    this.tag = undefined;
    this.reopenMs = FIRST_REOPEN_MS;
    connection.once('close', () => {
      if (this.connection === connection) {
        this.connection = undefined;
      }
    });
    await this.open(connection);
  }

  /** Takes no new messages until `resume`. What is in work goes on. */
  async pause(): Promise<void> {
    this.paused = true;
    await this.adjust().catch((error: unknown) => {
      // The channel is gone, and the consumer with it.
      this.logger.debug(`Cancelling found the channel closed: ${messageOf(error)}`);
    });
  }

  async resume(): Promise<void> {
    this.paused = false;
    await this.adjust();
  }

  /** Takes no new messages, for good. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.pause();
  }

  private async open(connection: ChannelModel): Promise<void> {
    const channel = await this.channelOf(connection);
    const opened = new DeliveryChannel(channel);
    // Unheard, an error of a channel would end the whole connection.
    channel.on('error', (error: Error) => this.report(error));
    channel.once('close', () => this.lost(opened, connection));
    await this.options.declare(channel);
    await channel.prefetch(this.options.concurrency, false);
    if (this.connection !== connection) {
      return;
    }
    this.current = opened;
    await this.adjust();
    this.trouble = undefined;
    this.reopenMs = FIRST_REOPEN_MS;
  }

  private async channelOf(connection: ChannelModel): Promise<Channel> {
    try {
      return await connection.createChannel();
    } catch (error) {
      // There is no channel whose end would open the next one.
      this.reopenLater(connection);
      throw error;
    }
  }

  /**
   * Brings the consumer to what is wanted now. One change at a time: two that overlap, as when a
   * reconnect meets the end of an outage, would leave a second consumer that nobody can cancel.
   */
  private adjust(): Promise<void> {
    const change = this.adjusted.then(() => this.change());
    this.adjusted = change.catch(() => undefined);
    return change;
  }

  private async change(): Promise<void> {
    const { current, tag } = this;
    const wanted = !this.paused && !this.stopped;
    if (current === undefined || wanted === (tag !== undefined)) {
      return;
    }
    if (tag !== undefined) {
      this.tag = undefined;
      await current.channel.cancel(tag);
      return;
    }
    const { consumerTag } = await current.channel.consume(
      this.options.queue,
      (message) => this.receive(message, current),
      { noAck: false },
    );
    if (this.current === current) {
      this.tag = consumerTag;
    }
  }

  private receive(message: ConsumeMessage | null, from: DeliveryChannel): void {
    if (message !== null) {
      this.options.onDelivery(new Delivery(message, from));
    } else if (this.current === from && !this.stopped) {
      this.report(new Error('the broker has cancelled the consumer'));
      this.current = undefined;
      this.tag = undefined;
      // Its end opens the next one.
      from.channel.close().catch(() => undefined);
    }
  }

  private lost(channel: DeliveryChannel, connection: ChannelModel): void {
    channel.close();
    if (this.current === channel) {
      this.current = undefined;
      this.tag = undefined;
    }
    this.reopenLater(connection);
  }

  private reopenLater(connection: ChannelModel): void {
    const timer = setTimeout(() => void this.reopen(connection), this.reopenMs);
    timer.unref();
    this.reopenMs = Math.min(this.reopenMs * 2, LONGEST_REOPEN_MS);
  }

  private async reopen(connection: ChannelModel): Promise<void> {
    if (this.connection !== connection || this.stopped) {
      return;
    }
    try {
      await this.open(connection);
      this.logger.log(`Consuming ${this.options.queue} again.`);
    } catch (error) {
      // What closed the channel has been reported, and its end opens the next one.
      this.logger.debug(`Not consuming ${this.options.queue}: ${messageOf(error)}`);
    }
  }

  private report(error: Error): void {
    const text = messageOf(error);
    this.trouble = `: ${text}`;
    this.logger.error(`The channel of ${this.options.queue} has failed: ${text}`);
  }
}
