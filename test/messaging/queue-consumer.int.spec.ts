import { connect, type ChannelModel } from 'amqplib';
import type { Delivery } from '../../src/messaging/consume/delivery.js';
import { QueueConsumer } from '../../src/messaging/consume/queue-consumer.js';
import { createTestBroker, eventually, useCleanup, type TestBroker } from '../support/index.js';

const QUEUE = 'consumed';
const cleanup = useCleanup();
let broker: TestBroker;
let connection: ChannelModel;

beforeAll(async () => {
  broker = cleanup.use(await createTestBroker());
  connection = await connect(broker.url);
  connection.on('error', () => undefined);
  await broker.withChannel((channel) => channel.assertQueue(QUEUE, { durable: true }));
});

// The vhost may be gone already, and the connection with it.
afterAll(() => connection.close().catch(() => undefined));

const received: Delivery[] = [];

async function withConsumer(work: (consumer: QueueConsumer) => Promise<void>): Promise<void> {
  const consumer = new QueueConsumer({
    queue: QUEUE,
    concurrency: 1,
    declare: async (channel) => {
      await channel.assertQueue(QUEUE, { durable: true });
    },
    onDelivery: (delivery) => received.push(delivery),
  });
  try {
    await work(consumer);
  } finally {
    await consumer.stop();
  }
}

async function consumers(): Promise<number> {
  return (await broker.depth(QUEUE)).consumers;
}

it('has one consumer when a reconnect meets the end of an outage', async () => {
  await withConsumer(async (consumer) => {
    await consumer.pause();
    const attaching = consumer.attach(connection);
    await Promise.all([attaching, consumer.resume(), consumer.resume()]);
    expect(consumer.notConsumingBecause).toBeUndefined();
    expect(await consumers()).toBe(1);
    await consumer.pause();
    expect(await consumers()).toBe(0);
  });
});

it('ends as it was last told, however quickly it was told something else', async () => {
  await withConsumer(async (consumer) => {
    const attaching = consumer.attach(connection);
    await Promise.all([attaching, consumer.pause(), consumer.resume(), consumer.pause()]);
    expect(await consumers()).toBe(0);
    await Promise.all([consumer.resume(), consumer.pause(), consumer.resume()]);
    expect(await consumers()).toBe(1);
    await Promise.all([consumer.resume(), consumer.stop(), consumer.resume()]);
    expect(await consumers()).toBe(0);
    await consumer.attach(connection);
    expect(await consumers()).toBe(0);
  });
});

it('comes back by itself, once, when its queue is deleted under it', async () => {
  await withConsumer(async (consumer) => {
    await consumer.attach(connection);
    await broker.deleteQueue(QUEUE);
    await eventually(() => expect(consumer.notConsumingBecause).toContain('cancelled'), {
      intervalMs: 1,
    });
    await eventually(() => expect(consumer.notConsumingBecause).toBeUndefined());
    expect(await consumers()).toBe(1);
  });
});

it('comes back by itself, once, when the broker closes its channel, and only its channel', async () => {
  let ended = false;
  connection.once('close', () => (ended = true));
  await withConsumer(async (consumer) => {
    await consumer.attach(connection);
    const before = received.length;
    await broker.sendToQueue(QUEUE, 'twice acknowledged');
    await eventually(() => expect(received.length).toBe(before + 1));
    received.at(-1)!.acknowledge();
    received.at(-1)!.acknowledge();
    await eventually(() => expect(consumer.notConsumingBecause).toContain('PRECONDITION_FAILED'), {
      intervalMs: 1,
    });
    await eventually(() => expect(consumer.notConsumingBecause).toBeUndefined());
    expect(await consumers()).toBe(1);
    expect(ended).toBe(false);
  });
});

it('takes no more at once than its concurrency', async () => {
  const before = received.length;
  await broker.sendToQueue(QUEUE, 'one');
  await broker.sendToQueue(QUEUE, 'two');
  await withConsumer(async (consumer) => {
    await Promise.all([consumer.attach(connection), consumer.resume()]);
    await eventually(async () => expect((await broker.depth(QUEUE)).ready).toBe(1));
    expect(received.length).toBe(before + 1);
  });
});
