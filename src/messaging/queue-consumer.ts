import { Logger } from '@nestjs/common';
import type { ConfirmChannel, ConsumeMessage } from 'amqplib';
import { Delivery, type DeliveryChannel } from './delivery.js';

export interface QueueConsumerOptions {
  queue: string;
  concurrency: number;
  onDelivery: (delivery: Delivery) => void;
  /** The broker ended the consumer by itself: the queue was deleted or moved. */
  onCancelled: () => void;
}

/** The one consumer of this process: on the current channel, unless paused or stopped. */
export class QueueConsumer {
  private readonly logger = new Logger(QueueConsumer.name);
  private current: DeliveryChannel | undefined;
  private tag: string | undefined;
  private paused = false;
  private stopped = false;
  private adjusted: Promise<void> = Promise.resolve();

  constructor(private readonly options: QueueConsumerOptions) {}

  /** Messages are being delivered to this process. */
  get consuming(): boolean {
    return this.tag !== undefined;
  }

  /** Uses a new channel; the one before it is gone, and its consumer with it. */
  async attach(channel: ConfirmChannel): Promise<void> {
    const attached: DeliveryChannel = { channel, open: true };
    channel.once('close', () => this.detach(attached));
    await channel.prefetch(this.options.concurrency, false);
    this.current = attached;
    this.tag = undefined;
    await this.adjust();
  }

  /** Takes no new messages until `resume`. What is in work goes on. */
  async pause(): Promise<void> {
    this.paused = true;
    await this.adjust().catch((error: unknown) => {
      // The channel is gone, and the consumer with it.
      this.logger.debug(`Cancelling found the channel closed: ${String(error)}`);
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
    if (current === undefined || wanted === this.consuming) {
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
      this.tag = undefined;
      this.options.onCancelled();
    }
  }

  private detach(channel: DeliveryChannel): void {
    channel.open = false;
    if (this.current === channel) {
      this.current = undefined;
      this.tag = undefined;
    }
  }
}
