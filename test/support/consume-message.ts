import type { ConsumeMessage, MessageProperties } from 'amqplib';

/** A message as amqplib hands it over, for specs that need no broker. */
export function consumeMessage(
  body: unknown,
  properties: Partial<MessageProperties> = {},
  routingKey = 'sale.completed',
): ConsumeMessage {
  return {
    content: Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body)),
    fields: {
      consumerTag: 'c',
      deliveryTag: 1,
      redelivered: false,
      exchange: 'events',
      routingKey,
    },
    properties: { headers: {}, ...properties } as MessageProperties,
  };
}
