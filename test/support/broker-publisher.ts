import { randomUUID } from 'node:crypto';
import type { ChannelModel, ConfirmChannel, Options } from 'amqplib';

/** Sent as it is, or as JSON when it is neither bytes nor text. */
export type Body = Buffer | string | object;

interface InFlight {
  exchange: string;
  routingKey: string;
  returned: boolean;
  fail: (error: Error) => void;
}

/** Publishes as a careful producer does: persistent, mandatory, and done when the broker has confirmed. */
export class ConfirmedPublisher {
  private channel: Promise<ConfirmChannel> | undefined;
  private readonly inFlight = new Set<InFlight>();

  constructor(private readonly connection: Pick<ChannelModel, 'createConfirmChannel'>) {}

  /** Rejects when no queue takes the message, when the broker refuses it, or when the exchange is missing. */
  async publish(
    exchange: string,
    routingKey: string,
    body: Body,
    options: Options.Publish = {},
  ): Promise<void> {
    this.channel ??= this.open().catch((error: unknown) => {
      this.channel = undefined;
      throw error;
    });
    const channel = await this.channel;
    const { content, contentType } = encode(body);
    await new Promise<void>((resolve, reject) => {
      const message: InFlight = { exchange, routingKey, returned: false, fail: reject };
      this.inFlight.add(message);
      channel.publish(
        exchange,
        routingKey,
        content,
        { persistent: true, mandatory: true, messageId: randomUUID(), contentType, ...options },
        (error: unknown) => {
          this.inFlight.delete(message);
          if (error instanceof Error) reject(error);
          else if (message.returned) reject(unroutable(exchange, routingKey));
          else resolve();
        },
      );
    });
  }

  private async open(): Promise<ConfirmChannel> {
    const channel = await this.connection.createConfirmChannel();
    // A return names no publish, but it comes before the confirm, and messages in flight by the same route
    // share their fate.
    channel.on('return', ({ fields }) => {
      for (const message of this.inFlight) {
        if (message.exchange === fields.exchange && message.routingKey === fields.routingKey) {
          message.returned = true;
        }
      }
    });
    channel.on('error', (error) => {
      for (const message of this.inFlight) message.fail(error);
    });
    channel.on('close', () => {
      this.channel = undefined;
    });
    return channel;
  }
}

function encode(body: Body): { content: Buffer; contentType: string | undefined } {
  if (Buffer.isBuffer(body)) return { content: body, contentType: undefined };
  if (typeof body === 'string') return { content: Buffer.from(body), contentType: undefined };
  return { content: Buffer.from(JSON.stringify(body)), contentType: 'application/json' };
}

function unroutable(exchange: string, routingKey: string): Error {
  return new Error(`No queue takes messages sent to exchange "${exchange}" as "${routingKey}".`);
}
