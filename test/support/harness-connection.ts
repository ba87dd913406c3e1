import amqp, { type Channel, type ChannelModel, type ConfirmChannel } from 'amqplib';

/** A connection of the harness; opened when it is needed, and again when a test has made the broker end it. */
export class HarnessConnection {
  private opened: Promise<ChannelModel> | undefined;

  constructor(private readonly url: string) {}

  async createChannel(): Promise<Channel> {
    return (await this.open()).createChannel();
  }

  async createConfirmChannel(): Promise<ConfirmChannel> {
    return (await this.open()).createConfirmChannel();
  }

  async close(): Promise<void> {
    const connection = await this.opened?.catch(() => undefined);
    await connection?.close().catch(() => undefined);
  }

  private open(): Promise<ChannelModel> {
    this.opened ??= this.connect().catch((error: unknown) => {
      this.opened = undefined;
      throw error;
    });
    return this.opened;
  }

  private async connect(): Promise<ChannelModel> {
    const connection = await amqp.connect(this.url);
    connection.on('error', () => undefined);
    connection.once('close', () => (this.opened = undefined));
    return connection;
  }
}
