import amqp, { type ConfirmChannel, type ConsumeMessage } from 'amqplib';
import {
  createTcpProxy,
  createTestBroker,
  eventually,
  useCleanup,
  watchSettlements,
  type TcpProxy,
  type TestBroker,
} from './index.js';

const cleanup = useCleanup();
const perTest = useCleanup('each');
let broker: TestBroker;
let proxy: TcpProxy;
let queue: string;

beforeAll(async () => {
  broker = cleanup.use(await createTestBroker());
});

beforeEach(async () => {
  proxy = perTest.use(await createTcpProxy(broker.url));
  queue = `queue.${expect.getState().currentTestName}`;
  await broker.withChannel((channel) =>
    channel.assertQueue(queue, { arguments: { 'x-queue-type': 'quorum' } }),
  );
});

async function openChannel(): Promise<ConfirmChannel> {
  const connection = await amqp.connect(proxy.url);
  connection.on('error', () => undefined);
  perTest.defer(() => connection.close().catch(() => undefined));
  return connection.createConfirmChannel();
}

async function consume(channel: ConfirmChannel): Promise<ConsumeMessage[]> {
  const received: ConsumeMessage[] = [];
  await channel.consume(queue, (message) => message && received.push(message));
  return received;
}

async function send(count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, (_, n) => broker.sendToQueue(queue, { n })));
}

describe('watchSettlements', () => {
  it('counts what is delivered, acked, nacked, rejected and still open, message by message', async () => {
    const settlements = watchSettlements(proxy);
    await send(6);
    const channel = await openChannel();

    const received = await consume(channel);
    await eventually(() => expect(received).toHaveLength(6));
    expect(settlements).toMatchObject({ delivered: 6, acked: 0, unsettled: 6 });

    const [, second, third, fourth, fifth] = received as [ConsumeMessage, ...ConsumeMessage[]];
    channel.ack(second!, true);
    channel.nack(third!, false, false);
    channel.reject(fourth!, false);
    channel.ack(fifth!);

    await eventually(() =>
      expect(settlements).toMatchObject({ acked: 3, nacked: 1, rejected: 1, unsettled: 1 }),
    );
  });

  it('forgets what was open on a connection that is gone', async () => {
    const settlements = watchSettlements(proxy);
    await send(2);
    await consume(await openChannel());
    await eventually(() => expect(settlements.unsettled).toBe(2));

    proxy.cut();

    expect(settlements).toMatchObject({ delivered: 2, acked: 0, unsettled: 0 });
    await eventually(async () => expect(await broker.depth(queue)).toMatchObject({ ready: 2 }));
  });
});
