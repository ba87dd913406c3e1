import amqp from 'amqplib';
import { createTestBroker, eventually, useCleanup, type TestBroker } from './index.js';

const cleanup = useCleanup();
const perTest = useCleanup('each');
let broker: TestBroker;

beforeAll(async () => {
  broker = cleanup.use(await createTestBroker());
});

async function declareQueue(name: string, type: 'quorum' | 'classic' = 'quorum'): Promise<void> {
  await broker.withChannel((channel) =>
    channel.assertQueue(name, { durable: true, arguments: { 'x-queue-type': type } }),
  );
}

/** A consumer of the code under test that takes up to `prefetch` messages and settles none. */
async function hoard(queue: string, prefetch: number): Promise<{ closed: Promise<unknown> }> {
  const connection = await amqp.connect(broker.url);
  const closed = new Promise((resolve) => connection.on('close', resolve));
  perTest.defer(() => connection.close().catch(() => undefined));
  const channel = await connection.createChannel();
  await channel.prefetch(prefetch);
  await channel.consume(queue, () => undefined);
  return { closed };
}

describe.each(['quorum', 'classic'] as const)('a %s queue', (type) => {
  it('tells its exact depth at once', async () => {
    const queue = `depth.${type}`;
    await declareQueue(queue, type);
    await Promise.all(Array.from({ length: 10 }, (_, n) => broker.sendToQueue(queue, { n })));
    expect(await broker.depth(queue)).toEqual({ ready: 10, consumers: 0 });

    await hoard(queue, 4);

    await eventually(async () =>
      expect(await broker.depth(queue)).toEqual({ ready: 6, consumers: 1 }),
    );
  });

  it('gives back what was published, in order', async () => {
    const queue = `drain.${type}`;
    await declareQueue(queue, type);
    await broker.sendToQueue(queue, { n: 1 }, { headers: { 'x-attempt': 2 }, messageId: 'm-1' });
    await broker.sendToQueue(queue, 'not json');

    const peeked = await broker.peek(queue);
    const drained = await broker.drainQueue(queue);

    expect(peeked.map(({ body }) => body.toString())).toEqual(['{"n":1}']);
    expect(drained.map(({ body }) => body.toString())).toEqual(['{"n":1}', 'not json']);
    expect(drained[0]).toMatchObject({
      headers: { 'x-attempt': 2 },
      properties: { messageId: 'm-1', deliveryMode: 2 },
      routingKey: queue,
      redelivered: true,
    });
    expect(await broker.depth(queue)).toEqual({ ready: 0, consumers: 0 });
  });
});

it('refuses to publish what no queue takes', async () => {
  await expect(broker.publish('amq.topic', 'nobody', {})).rejects.toThrow('No queue takes');
  await expect(broker.publish('missing', 'nobody', {})).rejects.toThrow('no exchange');
  await declareQueue('after');
  await broker.sendToQueue('after', {});
});

it('closes every connection of the code under test, and not its own', async () => {
  await declareQueue('closing');
  await broker.sendToQueue('closing', {});
  const consumer = await hoard('closing', 1);
  await eventually(async () => expect(await broker.connections()).toBe(1));

  await broker.closeAllConnections('maintenance');

  expect(await consumer.closed).toMatchObject({ message: expect.stringContaining('maintenance') });
  await eventually(async () => expect(await broker.connections()).toBe(0));
  await eventually(async () =>
    expect(await broker.depth('closing')).toEqual({ ready: 1, consumers: 0 }),
  );
});
