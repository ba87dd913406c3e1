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

  constructor(private readonly options: QueueConsumerOptions) {}

  /** Messages are being delivered to this process. */
  get consuming(): boolean {
    return this.tag !== undefined;
  }

  /** Uses a new channel; the one before it is gone, and its consumer with it. */
  async attach(channel: ConfirmChannel): Promise<void> {
    const attached: DeliveryChannel = { channel, open: true };
    this.current = attached;
    this.tag = undefined;
    channel.once('close', () => this.detach(attached));
    await channel.prefetch(this.options.concurrency, false);
    await this.consume();
  }

  /** Takes no new messages until `resume`. What is in work goes on. */
  async pause(): Promise<void> {
    this.paused = true;
    await this.cancel();
  }

  async resume(): Promise<void> {
    this.paused = false;
    await this.consume();
  }

  /** Takes no new messages, for good. */
  async stop(): Promise<void> {
    this.stopped = true;
    await this.cancel();
  }

  private async consume(): Promise<void> {
    const { current } = this;
    if (current === undefined || this.consuming || this.paused || this.stopped) {
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
    if (this.paused || this.stopped) {
      await this.cancel();
    }
  }

  private receive(message: ConsumeMessage | null, from: DeliveryChannel): void {
    if (message !== null) {
      this.options.onDelivery(new Delivery(message, from));
    } else if (this.current === from) {
      this.tag = undefined;
      this.options.onCancelled();
    }
  }

  private async cancel(): Promise<void> {
    const { current, tag } = this;
    this.tag = undefined;
    if (current !== undefined && tag !== undefined) {
      await current.channel.cancel(tag).catch((error: unknown) => {
        // The channel is gone, and the consumer with it.
        this.logger.debug(`Cancelling found the channel closed: ${String(error)}`);
      });
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
