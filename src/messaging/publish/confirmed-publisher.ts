import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import { connect, type AmqpConnectionManager, type ChannelWrapper } from 'amqp-connection-manager';
import type { ConfirmChannel, Message, Options } from 'amqplib';
import { redactUrls } from '../../observability/index.js';
import { atMost } from '../at-most.js';
import { UnroutableMessageError } from '../errors.js';
import { HEADER } from '../settle/headers.js';
import {
  CLOSE_TIMEOUT_MS,
  HEARTBEAT_SECONDS,
  MESSAGING_OPTIONS,
  RECONNECT_SECONDS,
  type MessagingOptions,
} from '../messaging.options.js';

/** How long a publish waits for a connection and its confirm, when its caller cannot wait for ever. */
const PUBLISH_TIMEOUT_MS = 10_000;

/**
 * Publishes, and resolves only when the broker has confirmed. On a connection of its own: when the
 * broker blocks publishers for want of memory, acknowledgements still go through.
 */
@Injectable()
export class ConfirmedPublisher implements OnApplicationShutdown {
  private readonly logger = new Logger(ConfirmedPublisher.name);
  private readonly connection: AmqpConnectionManager;
  private readonly channel: ChannelWrapper;
  /** Ids of messages that the broker sent back. A return comes before its confirm. */
  private readonly returned = new Set<string>();

  constructor(@Inject(MESSAGING_OPTIONS) { url, exchange }: MessagingOptions) {
    this.connection = connect([url], {
      heartbeatIntervalInSeconds: HEARTBEAT_SECONDS,
      reconnectTimeInSeconds: RECONNECT_SECONDS,
    });
    this.connection.on('connectFailed', ({ err }) => {
      this.logger.warn(`No connection to RabbitMQ for publishing: ${redactUrls(String(err))}`);
    });
    this.channel = this.connection.createChannel({
      confirm: true,
      setup: async (channel: ConfirmChannel) => {
        channel.on('return', (message: Message) => this.onReturn(message));
        await channel.assertExchange(exchange, 'topic', { durable: true });
      },
    });
    this.channel.on('error', (error: Error) => {
      this.logger.error(`The publishing channel failed: ${redactUrls(error.message)}`);
    });
  }

  /**
   * @throws UnroutableMessageError when no queue takes the message
   * @throws Error when the broker refuses it or does not confirm within ten seconds; it may have been
   *   stored all the same
   */
  publish(
    exchange: string,
    routingKey: string,
    content: Buffer,
    options: Options.Publish,
  ): Promise<void> {
    return this.send(exchange, routingKey, content, { ...options, timeout: PUBLISH_TIMEOUT_MS });
  }

  /**
   * The same without a limit of time, for what nobody waits for. While the broker blocks publishers it
   * has the message already, unread: sent again after a while, it would be stored as often.
   *
   * @throws UnroutableMessageError when no queue takes the message
   * @throws Error when the broker refuses it
   */
  publishPatiently(
    exchange: string,
    routingKey: string,
    content: Buffer,
    options: Options.Publish,
  ): Promise<void> {
    return this.send(exchange, routingKey, content, options);
  }

  private async send(
    exchange: string,
    routingKey: string,
    content: Buffer,
    options: Options.Publish & { timeout?: number },
  ): Promise<void> {
    const id = randomUUID();
    await this.channel.publish(exchange, routingKey, content, {
      ...options,
      persistent: true,
      mandatory: true,
      headers: { ...(options.headers as object), [HEADER.publishId]: id },
    });
    if (this.returned.delete(id)) {
      throw new UnroutableMessageError(exchange, routingKey);
    }
  }

  /** Answers a request. The asker may be gone, which is no fault of ours. */
  async reply(replyTo: string, correlationId: string | undefined, content: Buffer): Promise<void> {
    await this.channel.sendToQueue(replyTo, content, {
      correlationId,
      timeout: PUBLISH_TIMEOUT_MS,
    });
  }

  async onApplicationShutdown(): Promise<void> {
    await atMost(CLOSE_TIMEOUT_MS, this.connection.close());
  }

  private onReturn(message: Message): void {
    const id: unknown = message.properties.headers?.[HEADER.publishId];
    this.returned.add(String(id));
  }
}
