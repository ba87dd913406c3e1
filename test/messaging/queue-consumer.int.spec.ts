import type { ConfirmChannel, ConsumeMessage } from 'amqplib';
import { QueueConsumer } from '../../src/messaging/queue-consumer.js';
import { createTestBroker, eventually, useCleanup, type TestBroker } from '../support/index.js';

const QUEUE = 'consumed';
const cleanup = useCleanup();
let broker: TestBroker;

beforeAll(async () => {
  broker = cleanup.use(await createTestBroker());
  await broker.withChannel((channel) => channel.assertQueue(QUEUE, { durable: true }));
});

/** A channel has all that the consumer uses, with confirms or without. */
async function withConsumer(
  work: (consumer: QueueConsumer, channel: ConfirmChannel) => Promise<void>,
): Promise<ConsumeMessage[]> {
  const received: ConsumeMessage[] = [];
  const consumer = new QueueConsumer({
    queue: QUEUE,
    concurrency: 1,
    onDelivery: ({ message }) => received.push(message),
    onCancelled: () => undefined,
  });
  await broker.withChannel((channel) => work(consumer, channel as ConfirmChannel));
  return received;
}

async function consumers(): Promise<number> {
  return (await broker.depth(QUEUE)).consumers;
}

it('has one consumer when a reconnect meets the end of an outage', async () => {
  await withConsumer(async (consumer, channel) => {
    await consumer.pause();
    const attaching = consumer.attach(channel);
    await Promise.all([attaching, consumer.resume(), consumer.resume()]);
    expect(consumer.consuming).toBe(true);
    expect(await consumers()).toBe(1);
    await consumer.pause();
    expect(await consumers()).toBe(0);
  });
});

it('ends as it was last told, however quickly it was told something else', async () => {
  await withConsumer(async (consumer, channel) => {
    const attaching = consumer.attach(channel);
    await Promise.all([attaching, consumer.pause(), consumer.resume(), consumer.pause()]);
    expect(await consumers()).toBe(0);
    await Promise.all([consumer.resume(), consumer.pause(), consumer.resume()]);
    expect(await consumers()).toBe(1);
    await Promise.all([consumer.resume(), consumer.stop(), consumer.resume()]);
    expect(await consumers()).toBe(0);
    await consumer.attach(channel);
    expect(await consumers()).toBe(0);
  });
});

it('takes no more at once than its concurrency', async () => {
  await broker.sendToQueue(QUEUE, 'one');
  await broker.sendToQueue(QUEUE, 'two');
  const received = await withConsumer(async (consumer, channel) => {
    await Promise.all([consumer.attach(channel), consumer.resume()]);
    await eventually(async () => expect((await broker.depth(QUEUE)).ready).toBe(1));
  });
  expect(received).toHaveLength(1);
});
