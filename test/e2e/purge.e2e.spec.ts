import { countKeys, logDeletions, seedKeys, seenAgo } from '../idempotency/retention/replica.js';
import {
  createTestBroker,
  createTestDatabase,
  eventually,
  holds,
  startService,
  useCleanup,
  type ServiceProcess,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

const CONSUMER = 'commissions/sale.completed';
const cleanup = useCleanup();
let db: TestDatabase;
let broker: TestBroker;

beforeEach(async () => {
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker());
  await seenAgo(db, '0', CONSUMER);
});

const start = async (env: Record<string, string> = {}): Promise<ServiceProcess> =>
  cleanup.use(
    await startService({
      databaseUrl: db.url,
      rabbitmqUrl: broker.url,
      env: { PURGE_INTERVAL: '1s', ...env },
    }),
  );

const seed = (count: number, expired: string): Promise<void> =>
  seedKeys(db, { consumer: CONSUMER, count, expired, prefix: `${expired} ` });

/** A batch of the purge is at work. */
const inABatch = async (): Promise<void> => {
  const sessions = await db.activity();
  expect(
    sessions.filter(({ state, query }) => state === 'active' && query.includes('gone')),
  ).toHaveLength(1);
};

it('purges by itself, and says in its metrics what it has deleted', async () => {
  await seed(3, '1 hour');
  await seed(2, '-1 hour');
  const service = await start();
  await eventually(async () => expect(await countKeys(db)).toBe(2));
  await eventually(async () => {
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    expect(metrics).toMatch(/^inbox_purge_deleted_total\{table="processed_message"\} 3$/m);
    expect(metrics).toMatch(/^inbox_purge_runs_total\{outcome="completed"\} [1-9]/m);
  });
  expect((await service.stop()).code).toBe(0);
});

it('leaves nothing half deleted when its process is killed in a batch, and the next one finishes', async () => {
  await db.query(logDeletions(0.002));
  await seed(1_500, '1 hour');
  const service = await start();
  await eventually(inABatch);
  await service.kill();
  // The server notices only when it answers; what it had deleted is rolled back then.
  await eventually(async () => expect(await db.activity()).toEqual([]));
  expect(await countKeys(db)).toBe(1_500);
  expect(await db.query('SELECT FROM deletion')).toEqual([]);
  await start();
  await eventually(async () => expect(await countKeys(db)).toBe(0), { timeoutMs: 20_000 });
  expect(await db.query('SELECT count(*)::int FROM deletion')).toEqual([{ count: 1_500 }]);
});

it('stops with the service, after the batch in work', async () => {
  await db.query(logDeletions(0.002));
  await seed(3_500, '1 hour');
  const service = await start();
  await eventually(inABatch);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
  const left = await countKeys(db);
  expect(left).toBeGreaterThan(0);
  expect(left % 1_000).toBe(500);
  expect(left).toBeLessThan(3_500);
});

/** Loaded before the service: every Date of the process is so many hours off. */
const clockOff = (hours: number): string =>
  `data:text/javascript,${encodeURIComponent(`
    const Real = globalThis.Date, off = ${hours} * 3_600_000;
    globalThis.Date = class extends Real {
      constructor(...args) { args.length === 0 ? super(Real.now() + off) : super(...args); }
      static now() { return Real.now() + off; }
    };
    console.log('The clock says ' + new Date().toISOString());`)}`;

it.each([24, -24])(
  'goes by the database’s clock when that of its host is %d hours off',
  async (hours) => {
    await seed(2, '1 hour');
    await seed(3, '-1 hour');
    const service = await start({ NODE_OPTIONS: `--import=${clockOff(hours)}` });
    const said = new Date(/The clock says (\S+)/.exec(service.output())?.[1] ?? Number.NaN);
    expect(Math.round((said.getTime() - Date.now()) / 3_600_000)).toBe(hours);
    await eventually(async () => expect(await countKeys(db)).toBe(3));
    await holds(async () => expect(await countKeys(db)).toBe(3), 1_500);
    await broker.publish('events', 'sale.completed', {
      saleId: 'S-1',
      salespersonId: 'P-1',
      productType: 'standard',
      amountCents: 100,
      currency: 'EUR',
      completedAt: '2026-05-03T10:15:00Z',
    });
    await eventually(async () =>
      expect(
        await db.query(
          `SELECT extract(epoch FROM expires_at - now())::int / 86400 AS days
             FROM processed_message WHERE key = 'S-1'`,
        ),
      ).toEqual([{ days: 89 }]),
    );
  },
);
