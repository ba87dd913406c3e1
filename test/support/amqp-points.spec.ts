import amqp, { type ConfirmChannel, type ConsumeMessage } from 'amqplib';
import {
  atPoint,
  createTcpProxy,
  createTestBroker,
  cut,
  eventually,
  kill,
  stall,
  useCleanup,
  type Point,
  type TcpProxy,
  type TestBroker,
} from './index.js';

const cleanup = useCleanup();
const perTest = useCleanup('each');
const quorum = { arguments: { 'x-queue-type': 'quorum' } };
const retry = 'things.retry.50';
let broker: TestBroker;
let proxy: TcpProxy;
let queue: string;

beforeAll(async () => {
  broker = cleanup.use(await createTestBroker());
  await broker.withChannel((channel) => channel.assertQueue(retry, quorum));
});

beforeEach(async () => {
  proxy = perTest.use(await createTcpProxy(broker.url));
  queue = `queue.${expect.getState().currentTestName}`;
  await broker.withChannel((channel) => channel.assertQueue(queue, quorum));
});

async function openChannel(): Promise<ConfirmChannel> {
  const connection = await amqp.connect(proxy.url);
  connection.on('error', () => undefined);
  perTest.defer(() => connection.close().catch(() => undefined));
  return connection.createConfirmChannel();
}

/** A channel with the message that it has received. */
async function receive(): Promise<{ channel: ConfirmChannel; message: ConsumeMessage }> {
  await broker.sendToQueue(queue, 'original');
  const channel = await openChannel();
  const received: ConsumeMessage[] = [];
  await channel.consume(queue, (message) => message && received.push(message));
  await eventually(() => expect(received).toHaveLength(1));
  return { channel, message: received[0]! };
}

async function cutOnce(): Promise<void> {
  await eventually(() => expect(proxy.cuts).toBe(1));
}

async function left(): Promise<{ ready: number; consumers: number }> {
  return broker.depth(queue);
}

it.each([
  ['before-ack', 1],
  ['acked', 0],
] as const)('at %s the broker is left with %d messages', async (point, ready) => {
  const { channel, message } = await receive();
  proxy.intercept(atPoint(point, cut));

  channel.ack(message);

  await cutOnce();
  await eventually(async () => expect(await left()).toEqual({ ready, consumers: 0 }));
});

it('is at delivered when the client has been given the message', async () => {
  const received: ConsumeMessage[] = [];
  await broker.sendToQueue(queue, 'original');
  const channel = await openChannel();
  proxy.intercept(atPoint('delivered', cut));

  await channel.consume(queue, (message) => message && received.push(message));

  await cutOnce();
  await eventually(() => expect(received).toHaveLength(1));
  await eventually(async () => expect(await left()).toEqual({ ready: 1, consumers: 0 }));
});

it('is at published when the broker has the message, of several frames, and not its confirm', async () => {
  const channel = await openChannel();
  proxy.intercept(atPoint('published', cut));
  channel.sendToQueue(queue, Buffer.alloc(300_000), {}, () => undefined);

  await expect(channel.waitForConfirms()).rejects.toThrow();

  expect(proxy.cuts).toBe(1);
  expect((await broker.drainQueue(queue)).map(({ body }) => body.length)).toEqual([300_000]);
});

it('is at before-publish when the broker has no message yet', async () => {
  const channel = await openChannel();
  proxy.intercept(atPoint('before-publish', cut, { skip: 1 }));
  channel.sendToQueue(queue, Buffer.from('first'));
  await channel.waitForConfirms();
  channel.sendToQueue(queue, Buffer.from('second'));

  await expect(channel.waitForConfirms()).rejects.toThrow();

  expect((await broker.drainQueue(queue)).map(({ body }) => body.toString())).toEqual(['first']);
});

it('is at copy-published when the broker has a copy; other messages are none', async () => {
  const channel = await openChannel();
  proxy.intercept(atPoint('copy-published', cut));
  channel.sendToQueue(queue, Buffer.from('no copy'));
  await channel.waitForConfirms();
  channel.sendToQueue(retry, Buffer.from('copy'));

  await expect(channel.waitForConfirms()).rejects.toThrow();

  expect(await broker.drainQueue(retry)).toHaveLength(1);
});

it('is at copy-confirmed when a copy was confirmed on another connection', async () => {
  const { channel, message } = await receive();
  const publisher = await openChannel();
  proxy.intercept(atPoint('copy-confirmed', cut));
  await broker.sendToQueue(queue, 'not copied');
  channel.ack(message);
  await eventually(async () => expect(await left()).toMatchObject({ ready: 0 }));
  expect(proxy.cuts).toBe(0);
  publisher.sendToQueue(retry, Buffer.from('copy'));
  await publisher.waitForConfirms();

  channel.ackAll();

  await cutOnce();
  expect(await broker.drainQueue(retry)).toHaveLength(1);
  await eventually(async () => expect(await left()).toEqual({ ready: 1, consumers: 0 }));
});

it.each<[Point, number]>([
  ['before-ack', 1],
  ['acked', 0],
])('kills at %s, when %d messages are left', async (point, ready) => {
  const { channel, message } = await receive();
  const signals: string[] = [];
  proxy.intercept(atPoint(point, kill({ signal: (signal) => signals.push(signal) })));

  channel.ack(message);

  await eventually(() => expect(signals).toEqual(['SIGKILL']));
  await eventually(async () => expect(await left()).toEqual({ ready, consumers: 0 }));
});

it('stalls for a time, and what follows behind it', async () => {
  const { channel, message } = await receive();
  proxy.intercept(atPoint('before-ack', stall(300)));
  const from = performance.now();

  channel.ack(message);
  await channel.checkQueue(queue);

  expect(performance.now() - from).toBeGreaterThanOrEqual(295);
});
