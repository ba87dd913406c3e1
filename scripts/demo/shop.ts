import amqp, { type Channel, type ChannelModel } from 'amqplib';
import { ConfirmedPublisher } from '../../test/support/broker-publisher.js';
import type { Sending } from './traffic.js';

const ROUTING_KEY = 'sale.completed';
/** So many messages are on their way before the first has to be confirmed. */
const BATCH = 200;

export interface Depth {
  ready: number;
  consumers: number;
}

/** The producer: two connections, so that copies can be sent simultaneously. */
export class Shop {
  /** Messages that RabbitMQ has confirmed, copies included. */
  confirmed = 0;
  private readonly till: ConfirmedPublisher;
  private readonly otherTill: ConfirmedPublisher;

  private constructor(
    private readonly connections: readonly [ChannelModel, ChannelModel],
    private readonly questions: Channel,
    private readonly exchange: string,
  ) {
    this.till = new ConfirmedPublisher(connections[0]);
    this.otherTill = new ConfirmedPublisher(connections[1]);
  }

  static async open(url: string, exchange: string): Promise<Shop> {
    const first = await connect(url);
    try {
      const second = await connect(url);
      return new Shop([first, second], await first.createChannel(), exchange);
    } catch (error) {
      await first.close();
      throw error;
    }
  }

  /** Rejects when a message is not confirmed, or when no queue takes it. */
  async publish(sendings: Iterable<Sending>): Promise<void> {
    let batch: Promise<void>[] = [];
    for (const sending of sendings) {
      batch.push(this.send(this.till, sending));
      if (sending.simultaneously) batch.push(this.send(this.otherTill, sending));
      if (batch.length < BATCH) continue;
      await Promise.all(batch);
      batch = [];
    }
    await Promise.all(batch);
  }

  /** As of now. The queue has to exist. */
  async depth(queue: string): Promise<Depth> {
    const { messageCount, consumerCount } = await this.questions.checkQueue(queue);
    return { ready: messageCount, consumers: consumerCount };
  }

  async close(): Promise<void> {
    await Promise.all(
      this.connections.map((connection) => connection.close().catch(() => undefined)),
    );
  }

  private async send(publisher: ConfirmedPublisher, { sale, messageId }: Sending): Promise<void> {
    await publisher.publish(this.exchange, ROUTING_KEY, sale, { messageId });
    this.confirmed++;
  }
}

async function connect(url: string): Promise<ChannelModel> {
  const connection = await amqp.connect(url);
  connection.on('error', () => undefined); // what was being done on it fails, and says so
  return connection;
}
