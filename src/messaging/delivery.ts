import type { ConfirmChannel, ConsumeMessage } from 'amqplib';

/** A channel that deliveries came on, and whether their settlement can still go back on it. */
export interface DeliveryChannel {
  channel: ConfirmChannel;
  open: boolean;
}

/** One message as it was delivered, and the only way to settle it. */
export class Delivery {
  constructor(
    readonly message: ConsumeMessage,
    private readonly on: DeliveryChannel,
  ) {}

  /** False when the channel is gone: the broker delivers the message again, here or elsewhere. */
  get open(): boolean {
    return this.on.open;
  }

  /** @throws IllegalOperationError when the channel is gone */
  acknowledge(): void {
    this.on.channel.ack(this.message);
  }

  /** To the dead letters as it is, by the broker. @throws IllegalOperationError when the channel is gone */
  deadLetter(): void {
    this.on.channel.nack(this.message, false, false);
  }

  /** Back to its place in the queue. @throws IllegalOperationError when the channel is gone */
  handBack(): void {
    this.on.channel.nack(this.message, false, true);
  }
}
