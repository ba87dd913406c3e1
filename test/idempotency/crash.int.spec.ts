import {
  atPoint,
  createTcpProxy,
  createTestBroker,
  createTestDatabase,
  cut,
  eventually,
  kill,
  startService,
  useCleanup,
  watchSettlements,
  type ServiceProcess,
  type Settlements,
  type TcpProxy,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

const cleanup = useCleanup();
let db: TestDatabase;
let broker: TestBroker;
let databaseProxy: TcpProxy;
let rabbitProxy: TcpProxy;
let settlements: Settlements;
let service: ServiceProcess;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker());
  databaseProxy = cleanup.use(await createTcpProxy(db.url));
  rabbitProxy = cleanup.use(await createTcpProxy(broker.url));
  settlements = watchSettlements(rabbitProxy);
  service = await start();
});

const start = (): Promise<ServiceProcess> =>
  startService({
    databaseUrl: databaseProxy.url,
    rabbitmqUrl: rabbitProxy.url,
    env: { RETRY_DELAYS: '0.05,0.05', CONSUMER_CONCURRENCY: '4' },
  });

const publish = (saleId: string): Promise<void> =>
  broker.publish('events', 'sale.completed', {
    saleId,
    salespersonId: saleId,
    productType: 'standard',
    amountCents: 10_000,
    currency: 'EUR',
    completedAt: '2026-05-03T10:15:00Z',
  });

/** Commissions, keys and the balance of a sale, whose salesperson has no other. */
async function stateOf(saleId: string): Promise<unknown> {
  const [row] = await db.query(
    `SELECT (SELECT count(*)::int FROM commission WHERE sale_id = $1) AS commissions,
            (SELECT count(*)::int FROM processed_message WHERE key = $1) AS keys,
            (SELECT total_cents::int FROM salesperson_balance WHERE salesperson_id = $1) AS cents`,
    [saleId],
  );
  return row;
}

const none = { commissions: 0, keys: 0, cents: null };
const once = { commissions: 1, keys: 1, cents: 500 };

/** Everything is settled, and with this in the database. */
async function expectEnd(saleId: string, state: unknown): Promise<void> {
  await eventually(async () => {
    expect(await stateOf(saleId)).toEqual(state);
    expect({
      ready: (await broker.depth('commissions')).ready,
      open: settlements.unsettled,
    }).toEqual({ ready: 0, open: 0 });
  });
  expect((await broker.depth('commissions.dead')).ready).toBe(0);
}

it('has one effect when the process is killed between COMMIT and acknowledgement', async () => {
  const stop = rabbitProxy.intercept(atPoint('before-ack', kill(service)));
  await publish('commit-ack');
  expect((await service.exited).signal).toBe('SIGKILL');
  stop();
  expect(await stateOf('commit-ack')).toEqual(once);
  await eventually(async () => expect((await broker.depth('commissions')).ready).toBe(1));
  service = await start();
  await expectEnd('commit-ack', once);
});

it.each([
  ['delivered', none],
  ['claimed', none],
  ['before-commit', none],
  ['committed', once],
] as const)('has one effect when the process is killed at the point %s', async (when, left) => {
  const proxy = when === 'delivered' ? rabbitProxy : databaseProxy;
  const stop = proxy.intercept(atPoint(when, kill(service)));
  await publish(when);
  expect((await service.exited).signal).toBe('SIGKILL');
  stop();
  await eventually(async () => expect(await stateOf(when)).toEqual(left));
  service = await start();
  await expectEnd(when, once);
});

it('has one effect when the process is killed in the middle of a handler', async () => {
  const blocker = await db.pool.connect();
  await blocker.query('BEGIN; LOCK TABLE salesperson_balance');
  await publish('middle');
  await eventually(async () =>
    expect((await db.activity()).filter(({ blockedBy }) => blockedBy.length > 0)).toHaveLength(1),
  );
  await service.kill();
  await blocker.query('COMMIT');
  blocker.release();
  expect(await stateOf('middle')).toEqual(none);
  service = await start();
  await expectEnd('middle', once);
});

it('has one effect when an acknowledgement does not arrive', async () => {
  const stop = rabbitProxy.intercept(atPoint('before-ack', cut));
  const { cuts } = rabbitProxy;
  await publish('lost-ack');
  await eventually(() => expect(rabbitProxy.cuts).toBe(cuts + 1));
  stop();
  const { delivered } = settlements;
  await eventually(() => expect(settlements.delivered).toBe(delivered + 1));
  await expectEnd('lost-ack', once);
});
