import { EventPublisher, UnroutableMessageError } from '../../src/messaging/index.js';
import { atPoint, cut, eventually, useCleanup } from '../support/index.js';
import { startOrders, type OrderService } from './orders.js';

const cleanup = useCleanup();
let service: OrderService;
let events: EventPublisher;

beforeAll(async () => {
  service = await startOrders(cleanup);
  events = service.app.get(EventPublisher);
  await service.broker.withChannel(async (channel) => {
    await channel.assertQueue('taken', { durable: true });
    await channel.bindQueue('taken', 'events', 'taken.*');
  });
});

it('publishes a persistent message with an id, the service’s name and the time', async () => {
  await events.publish('taken.one', { price: 1 }, { correlationId: 'c', headers: { tenant: 'T' } });
  const [message] = await service.broker.drainQueue('taken');
  expect(message!.body.toString()).toBe('{"price":1}');
  expect(message!.routingKey).toBe('taken.one');
  expect(message!.properties).toMatchObject({
    deliveryMode: 2,
    contentType: 'application/json',
    correlationId: 'c',
    appId: 'commissions',
    messageId: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
  });
  expect(message!.headers).toMatchObject({ tenant: 'T' });
  expect(Math.abs(Number(message!.properties.timestamp) - Date.now() / 1000)).toBeLessThan(60);
});

it('has stored the message when it resolves', async () => {
  for (let n = 0; n < 20; n++) {
    await events.publish('taken.now', { n });
    expect(await service.broker.drainQueue('taken')).toHaveLength(1);
  }
});

it('refuses a message that no queue takes', async () => {
  await expect(events.publish('nobody.cares', {})).rejects.toThrow(UnroutableMessageError);
  await expect(events.publish('nobody.cares', {})).rejects.toThrow('No queue takes nobody.cares');
});

it('tells exactly which of many concurrent messages were returned', async () => {
  const keys = Array.from({ length: 300 }, (_, n) => (n % 3 === 0 ? `nobody.${n}` : `taken.${n}`));
  const results = await Promise.allSettled(keys.map((key) => events.publish(key, { key })));
  const accepted = keys.filter((_, index) => results[index]!.status === 'fulfilled');
  const stored = await service.broker.drainQueue('taken');
  expect(stored.map(({ routingKey }) => routingKey).sort()).toEqual(accepted.sort());
  expect(accepted).toHaveLength(200);
});

it('does not say that a message is stored when its confirm was lost', async () => {
  service.rabbit.intercept(atPoint('published', cut));
  await expect(events.publish('taken.unconfirmed', {})).rejects.toThrow('channel closed');
  await eventually(() => events.publish('taken.again', {}));
  const keys = (await service.broker.drainQueue('taken')).map(({ routingKey }) => routingKey);
  expect(keys).toEqual(['taken.unconfirmed', 'taken.again']);
});

it('declares its exchange again when somebody has deleted it, and goes on', async () => {
  await service.broker.withChannel((channel) => channel.deleteExchange('events'));
  await expect(events.publish('taken.gone', {})).rejects.toThrow();
  await eventually(() =>
    service.broker.withChannel((channel) => channel.bindQueue('taken', 'events', 'taken.*')),
  );
  await eventually(() => events.publish('taken.back', {}));
  expect(await service.broker.drainQueue('taken')).toHaveLength(1);
});

it('refuses what the broker refuses, and goes on with the next', async () => {
  const refused = events.publish('taken.refused', {}, { headers: { CC: 'not a list' } });
  await expect(refused).rejects.toThrow();
  await eventually(() => events.publish('taken.next', {}));
  const keys = (await service.broker.drainQueue('taken')).map(({ routingKey }) => routingKey);
  expect(keys).toEqual(['taken.next']);
});

it('fails, and does not hang, when the broker stays silent', async () => {
  service.rabbit.stall();
  try {
    await expect(events.publish('taken.silent', {})).rejects.toThrow('timeout');
  } finally {
    service.rabbit.resume();
  }
});
