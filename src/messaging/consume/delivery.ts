import type { Channel, ConsumeMessage } from 'amqplib';

/** A channel that deliveries come on. */
export class DeliveryChannel {
  private readonly closing = new AbortController();

  constructor(readonly channel: Channel) {}

  /** Aborted when the channel is gone, and with it every way to settle what came on it. */
  get closed(): AbortSignal {
    return this.closing.signal;
  }

  close(): void {
    this.closing.abort();
  }
}

/** One message as it was delivered, and the only way to settle it. */
export class Delivery {
  constructor(
    readonly message: ConsumeMessage,
    readonly on: DeliveryChannel,
  ) {}

  /** False when the channel is gone: the broker delivers the message again, here or elsewhere. */
  get open(): boolean {
    return !this.on.closed.aborted;
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
