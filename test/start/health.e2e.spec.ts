import {
  createTcpProxy,
  createTestBroker,
  createTestDatabase,
  eventually,
  startService,
  useCleanup,
  type ServiceProcess,
  type TcpProxy,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

const cleanup = useCleanup();
let db: TestDatabase;
let broker: TestBroker;
let postgres: TcpProxy;
let rabbit: TcpProxy;
let service: ServiceProcess;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker());
  postgres = cleanup.use(await createTcpProxy(db.url));
  rabbit = cleanup.use(await createTcpProxy(broker.url));
  service = cleanup.use(await startService({ databaseUrl: postgres.url, rabbitmqUrl: rabbit.url }));
});

type Parts = Record<string, { status: string; reason?: string }>;

async function ready(): Promise<{ status: number; parts: Parts }> {
  const response = await fetch(`${service.url}/health/ready`);
  const { details } = (await response.json()) as { details: Parts };
  return { status: response.status, parts: details };
}

async function isLive(): Promise<void> {
  const response = await fetch(`${service.url}/health/live`);
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ status: 'ok' });
}

async function becomesReady(): Promise<void> {
  await eventually(async () => expect((await ready()).status).toBe(200), { timeoutMs: 20_000 });
}

afterEach(becomesReady);

it('is ready when it consumes, can write, and its schema is current', async () => {
  expect(await ready()).toEqual({
    status: 200,
    parts: {
      consumer: { status: 'up' },
      database: { status: 'up' },
      migrations: { status: 'up' },
    },
  });
});

it('is live and not ready while its database is away', async () => {
  postgres.refuse();
  postgres.cut();
  await eventually(async () => {
    const { status, parts } = await ready();
    expect(status).toBe(503);
    expect(parts.database).toMatchObject({ status: 'down' });
    expect(parts.migrations).toMatchObject({ status: 'down' });
    expect(parts.consumer).toMatchObject({ status: 'up' });
  });
  await isLive();
  await postgres.accept();
});

it('answers that it is not ready also while its database is silent', async () => {
  postgres.stall();
  const from = performance.now();
  const { status, parts } = await ready();
  expect(status).toBe(503);
  expect(parts.database).toMatchObject({ status: 'down' });
  expect(performance.now() - from).toBeLessThan(5_000);
  await isLive();
  postgres.resume();
});

it('is not ready when a migration is pending', async () => {
  const [newest] = await db.query<{ name: string; timestamp: string }>(
    'DELETE FROM migrations WHERE id = (SELECT max(id) FROM migrations) RETURNING name, timestamp',
  );
  const { status, parts } = await ready();
  expect(status).toBe(503);
  expect(parts.migrations).toEqual({ status: 'down', reason: `pending: ${newest!.name}` });
  await isLive();
  await db.query('INSERT INTO migrations (name, timestamp) VALUES ($1, $2)', [
    newest!.name,
    newest!.timestamp,
  ]);
});

it('is live and not ready while its broker is away', async () => {
  rabbit.refuse();
  rabbit.cut();
  await eventually(async () => {
    const { status, parts } = await ready();
    expect(status).toBe(503);
    expect(parts.consumer).toEqual({
      status: 'down',
      reason: 'not connected to the queue commissions',
    });
  });
  await isLive();
  await rabbit.accept();
});

it('counts what became of its messages', async () => {
  await broker.publish('events', 'sale.completed', 'not json');
  await broker.publish('events', 'sale.completed', { saleId: 7n.toString() });
  await eventually(async () => {
    const response = await fetch(`${service.url}/metrics`);
    expect(response.headers.get('content-type')).toContain('text/plain');
    const text = await response.text();
    expect(text).toContain(
      'inbox_settlements_total{settlement="dead_lettered",reason="not-json"} 1',
    );
    expect(text).toContain('reason="invalid-payload"} 1');
    expect(text).toMatch(
      /inbox_outcomes_total\{consumer="commissions\/sale.completed",outcome="failed"\} 1/,
    );
    expect(text).toContain('process_cpu_seconds_total');
  });
});

// The last one: sessions of the harness that begin meanwhile take no writes either.
it('is not ready while its database takes no writes, as after a failover', async () => {
  const admin = await db.pool.connect();
  try {
    await admin.query(`ALTER DATABASE "${db.name}" SET default_transaction_read_only = on`);
    await db.terminateBackends();
    await eventually(async () => {
      const { status, parts } = await ready();
      expect(status).toBe(503);
      expect(parts.database).toEqual({ status: 'down', reason: 'the database is read-only' });
    });
    await isLive();
    await admin.query(`ALTER DATABASE "${db.name}" RESET default_transaction_read_only`);
  } finally {
    admin.release();
  }
  await db.terminateBackends();
});
