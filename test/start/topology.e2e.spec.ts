import {
  createTestBroker,
  createTestDatabase,
  eventually,
  startService,
  useCleanup,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

const cleanup = useCleanup();
let db: TestDatabase;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase());
});

async function startRefused(broker: TestBroker): Promise<string> {
  const service = cleanup.use(
    await startService({ databaseUrl: db.url, rabbitmqUrl: broker.url, waitReady: false }),
  );
  expect(await service.exited).toEqual({ code: 1, signal: null });
  return service.output();
}

it.each([
  ['its queue', 'commissions'],
  ['the queue of its dead letters', 'commissions.dead'],
  ['a retry queue', 'commissions.retry.1000'],
])('exits with one clear error when %s exists with other arguments', async (_, queue) => {
  const broker = cleanup.use(await createTestBroker());
  await broker.withChannel((channel) => channel.assertQueue(queue, { durable: true }));
  const output = await startRefused(broker);
  expect(output).toContain('RabbitMQ refuses the service');
  expect(output).toContain(`'${queue}'`);
  expect(output).toContain('delete it when it is empty, or set another SERVICE_NAME');
  expect(output).not.toContain('is consuming');
  expect(output.split('RabbitMQ refuses the service')).toHaveLength(2);
});

it('exits when the exchange is of another type', async () => {
  const broker = cleanup.use(await createTestBroker());
  await broker.withChannel((channel) => channel.assertExchange('events', 'fanout'));
  expect(await startRefused(broker)).toContain(`exchange 'events'`);
});

it('declares durable quorum queues, binds each pattern, and starts again on what is there', async () => {
  const broker = cleanup.use(await createTestBroker());
  const options = { databaseUrl: db.url, rabbitmqUrl: broker.url };
  const first = await startService(options);
  expect(await first.stop()).toEqual({ code: 0, signal: null });
  const second = cleanup.use(await startService(options));
  await eventually(async () =>
    expect(await broker.depth('commissions')).toEqual({ ready: 0, consumers: 1 }),
  );
  expect(second.output()).not.toContain('RabbitMQ refuses');
  // Refused where its limit is another: without one, RabbitMQ 4 drops a letter after twenty looks at it.
  await broker.withChannel((channel) =>
    channel.assertQueue('commissions.dead', {
      arguments: { 'x-queue-type': 'quorum', 'x-delivery-limit': 1_000_000_000 },
    }),
  );
});
