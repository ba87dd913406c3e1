import { inspect } from 'node:util';
import { consumeMessage } from '../../../test/support/consume-message.js';
import { DeliveryContext } from './delivery-context.js';

interface Channel {
  ack(message: unknown): void;
  nack(message: unknown): void;
}

describe('DeliveryContext', () => {
  const message = consumeMessage({ saleId: 'S' });
  const context = new DeliveryContext(message, 'sale.completed');

  it('gives a handler the message and the pattern', () => {
    expect(context.getMessage()).toBe(message);
    expect(context.message).toBe(message);
    expect(context.getPattern()).toBe('sale.completed');
  });

  it.each(['ack', 'nack'] as const)('refuses channel.%s, and says what to do instead', (method) => {
    const channel = context.getChannelRef() as Channel;
    expect(() => channel[method](message)).toThrow(
      `channel.${method}() in a handler: messages are settled after it, once. Return to acknowledge`,
    );
  });

  it('can be awaited and written to a log', async () => {
    expect(await context.getChannelRef()).toBe(context.getChannelRef());
    expect(inspect(context)).toContain('sale.completed');
    expect(JSON.stringify(context)).toContain('sale.completed');
  });

  it('starts before the guards, without a failure', () => {
    expect([context.entered, context.failure]).toEqual([false, undefined]);
  });
});
