import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import amqp, { type ChannelModel } from 'amqplib';
import { createTestBroker, eventually, holds, startOwnBroker, useCleanup } from './index.js';
import type { OwnBroker, TestBroker } from './index.js';
import { projectRoot } from './project.js';

const cleanup = useCleanup();
const perTest = useCleanup('each');
let node: OwnBroker;
let broker: TestBroker;

beforeAll(async () => {
  node = cleanup.use(await startOwnBroker({ consumerTimeoutMs: 800 }));
  broker = cleanup.use(await createTestBroker(node));
  await broker.withChannel((channel) =>
    channel.assertQueue('things', { arguments: { 'x-queue-type': 'quorum' } }),
  );
}, 60_000);

async function connect(url: string): Promise<ChannelModel> {
  const connection = await amqp.connect(url);
  connection.on('error', () => undefined);
  perTest.defer(() => connection.close().catch(() => undefined));
  return connection;
}

it('closes the channel of a consumer that holds a message for too long', async () => {
  await broker.sendToQueue('things', 'held');
  const channel = await (await connect(broker.url)).createChannel();
  const closed = once(channel, 'error');
  await channel.consume('things', () => undefined);

  expect(await closed).toEqual([
    expect.objectContaining({ message: expect.stringContaining('timed out') as string }),
  ]);

  expect(await broker.drainQueue('things')).toHaveLength(1);
});

it.each(['memory', 'disk'] as const)('takes nothing in a %s alarm, and answers', async (kind) => {
  await node.alarm(kind);
  let confirmed = false;
  const sent = broker.sendToQueue('things', 'late').then(() => (confirmed = true));

  await holds(() => expect(confirmed).toBe(false), 300);
  expect(await broker.depth('things')).toEqual({ ready: 0, consumers: 0 });

  await node.clearAlarm();
  await sent;
  expect(await broker.drainQueue('things')).toHaveLength(1);
});

it('keeps what it has confirmed when it is killed, and answers as before', async () => {
  await broker.sendToQueue('things', 'kept');

  await node.restart('SIGKILL');

  // A quorum queue elects its leader after the node has begun to answer.
  const taken = await eventually(async () => {
    const messages = await broker.drainQueue('things');
    expect(messages).toHaveLength(1);
    return messages;
  });
  expect(taken[0]!.body.toString()).toBe('kept');
  await broker.sendToQueue('things', 'again');
  expect(await broker.drainQueue('things')).toHaveLength(1);
}, 60_000);

it('is gone when the process that started it was killed', async () => {
  const script =
    "import { startOwnBroker } from './test/support/own-broker.ts';" +
    'console.log((await startOwnBroker()).url); setInterval(() => undefined, 1000);';
  const test = spawn(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', script],
    { cwd: projectRoot, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  perTest.defer(() => test.kill('SIGKILL'));
  const [url] = (await once(createInterface(test.stdout), 'line')) as [string];
  await (await connect(url)).close();

  test.kill('SIGKILL');

  await eventually(() => expect(connect(url)).rejects.toThrow('ECONNREFUSED'));
}, 60_000);
