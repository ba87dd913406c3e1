import {
  createTestBroker,
  createTestDatabase,
  eventually,
  holds,
  startOwnBroker,
  startService,
  useCleanup,
  type OwnBroker,
  type ServiceProcess,
  type TestDatabase,
} from '../../support/index.js';
import { complete, postedSales } from '../../e2e/sales.js';
import { effects, gate, place, settled, startOrders, type OrderService } from '../orders.js';

const cleanup = useCleanup();
const failing = ['failing 1', 'failing 2', 'failing 3'];
const retryQueues = [50, 100, 150].map((delay) => `commissions.retry.${delay}`);
let node: OwnBroker;
let service: OrderService;

beforeAll(async () => {
  node = cleanup.use(await startOwnBroker());
  service = await startOrders(cleanup, { on: node, config: { concurrency: 4 } });
}, 60_000);

beforeEach(() => service.db.query('TRUNCATE effect'));

afterEach(() => node.clearAlarm());

/** Three messages that fail once and one that does not, all in work; many that do not wait behind them. */
async function inWork(name: string): Promise<{ orders: string[]; letGo: () => void }> {
  const { opened, open } = gate();
  const succeeding = Array.from({ length: 30 }, (_, index) => `succeeding ${index}`);
  const orders = [...failing, ...succeeding].map((order) => `${name}: ${order}`);
  for (const [index, orderId] of orders.entries()) {
    service.plans.plan(orderId, async (run) => {
      if (index < 4) await opened;
      if (index < failing.length && run === 1) throw new Error('fails once');
    });
    await place(service.broker, { orderId });
  }
  await eventually(() => expect(service.settlements.unsettled).toBe(4));
  return { orders, letGo: open };
}

async function copies(): Promise<number> {
  const depths = await Promise.all(
    [...retryQueues, 'commissions.dead'].map((queue) => service.broker.depth(queue)),
  );
  return depths.reduce((total, { ready }) => total + ready, 0);
}

/** Everything is applied once, with one copy of each message that failed. */
async function drained(orders: string[], delivered: number): Promise<void> {
  await eventually(async () =>
    expect((await effects(service.db)).sort()).toEqual([...orders].sort()),
  );
  await settled(service);
  expect(await copies()).toBe(0);
  expect(service.settlements.delivered - delivered).toBe(orders.length + failing.length);
}

it.each([
  // Longer than any publish with a limit of time, after which a copy would be sent again.
  ['memory', 12_000],
  ['disk', 1_000],
] as const)(
  'keeps in a %s alarm of %d ms what has failed, and acknowledges the rest, with one copy of each',
  async (kind, lastsMs) => {
    const { delivered, acked, nacked } = service.settlements;
    const { orders, letGo } = await inWork(kind);
    await node.alarm(kind);
    letGo();

    const succeeded = orders.length - failing.length;
    await eventually(() => expect(service.settlements.acked).toBe(acked + succeeded));
    await holds(async () => {
      expect(service.settlements).toMatchObject({
        unsettled: failing.length,
        delivered: delivered + orders.length,
        acked: acked + succeeded,
        nacked,
      });
      expect(await copies()).toBe(0);
    }, lastsMs);
    await node.clearAlarm();
    await drained(orders, delivered);
  },
  60_000,
);

it('stops with 0 in an alarm while a failed message waits for its copy, which is not lost', async () => {
  const db = cleanup.use(await createTestDatabase());
  const broker = cleanup.use(await createTestBroker(node));
  const start = (): Promise<ServiceProcess> =>
    startService({
      databaseUrl: db.url,
      rabbitmqUrl: broker.url,
      env: { SHUTDOWN_GRACE_SECONDS: '1' },
    });
  const first = cleanup.use(await start());
  await db.query(failWhenGateOpens);
  await complete(broker, { saleId: 'S-1' });
  await eventually(async () => expect(await sessions(db, 'Timeout: PgSleep')).toBe(1));
  await node.alarm('memory');
  await db.query('INSERT INTO gate DEFAULT VALUES');
  await eventually(async () => expect(await sessions(db, 'Client: ClientRead')).toBeGreaterThan(0));
  await eventually(async () => expect(await sessions(db, 'Timeout: PgSleep')).toBe(0));

  const from = performance.now();
  expect(await first.stop(8_000)).toEqual({ code: 0, signal: null });
  expect(performance.now() - from).toBeLessThan(6_000);
  expect(await broker.depth('commissions')).toEqual({ ready: 1, consumers: 0 });

  await node.clearAlarm();
  await db.query('DROP TRIGGER fail ON commission');
  cleanup.use(await start());
  await eventually(async () => expect(await postedSales(db)).toEqual(['S-1']));
  expect((await broker.depth('commissions.dead')).ready).toBe(0);
}, 60_000);

const failWhenGateOpens = `
  CREATE TABLE gate ();
  CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      WHILE NOT EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.02); END LOOP;
      RAISE EXCEPTION 'as planned';
    END $$;
  CREATE TRIGGER fail BEFORE INSERT ON commission FOR EACH ROW EXECUTE FUNCTION fail()`;

async function sessions(db: TestDatabase, waitsFor: string): Promise<number> {
  return (await db.activity()).filter((session) => session.waitsFor === waitsFor).length;
}
