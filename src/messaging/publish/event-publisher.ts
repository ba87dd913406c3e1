import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { ConfirmedPublisher } from './confirmed-publisher.js';
import { MESSAGING_OPTIONS, type MessagingOptions } from '../messaging.options.js';

export interface PublishOptions {
  /** Identifies this message, not its intent. Default: a random UUID. */
  messageId?: string;
  correlationId?: string;
  headers?: Record<string, unknown>;
}

/**
 * Publishes events on the service's exchange. Not part of a handler's transaction: an event goes out
 * even when the transaction rolls back afterwards, and again when the handler runs again.
 *
 * @example await this.events.publish('commission.posted', { saleId: sale.saleId });
 */
@Injectable()
export class EventPublisher {
  constructor(
    private readonly publisher: ConfirmedPublisher,
    @Inject(MESSAGING_OPTIONS) private readonly options: MessagingOptions,
  ) {}

  /**
   * Resolves when the broker has stored the event in at least one queue.
   *
   * @param payload becomes the JSON body
   * @throws UnroutableMessageError when no queue is bound for the routing key
   * @throws Error when the broker did not confirm within ten seconds
   */
  async publish(routingKey: string, payload: unknown, options: PublishOptions = {}): Promise<void> {
    await this.publisher.publish(
      this.options.exchange,
      routingKey,
      Buffer.from(JSON.stringify(payload)),
      {
        contentType: 'application/json',
        messageId: options.messageId ?? randomUUID(),
        correlationId: options.correlationId,
        timestamp: Math.floor(Date.now() / 1000),
        appId: this.options.queue,
        headers: options.headers,
      },
    );
  }
}
