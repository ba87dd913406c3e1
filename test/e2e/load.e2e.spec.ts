import { setTimeout as sleep } from 'node:timers/promises';
import {
  createTestBroker,
  createTestDatabase,
  eventually,
  startService,
  useCleanup,
  type ServiceProcess,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';
import { complete, type Sale } from './sales.js';

const SALES = 5_000;
const PROCESSES = 4;
/** On a slow machine most of a process's second goes into its start; then the rest must be drained in peace. */
const MAX_KILLS = 12;
const TYPES = [
  ['standard', 500n],
  ['premium', 800n],
  ['service', 300n],
] as const;

const cleanup = useCleanup();
let db: TestDatabase;
let broker: TestBroker;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker());
});

const sales = Array.from({ length: SALES }, (_, n): Partial<Sale> => ({
  saleId: `S-${n}`,
  salespersonId: `P-${n % 50}`,
  productType: TYPES[n % 3]![0],
  amountCents: 1_000 + n * 7,
}));

/** What each salesperson must get for the published sales, by integer arithmetic of the test's own. */
function owed(): Map<string, bigint> {
  const totals = new Map<string, bigint>();
  sales.forEach(({ salespersonId, amountCents }, n) => {
    const amount = (BigInt(amountCents!) * TYPES[n % 3]![1] + 5_000n) / 10_000n;
    totals.set(salespersonId!, (totals.get(salespersonId!) ?? 0n) + amount);
  });
  return totals;
}

function start(waitReady = true): Promise<ServiceProcess> {
  return startService({
    waitReady,
    databaseUrl: db.url,
    rabbitmqUrl: broker.url,
    env: {
      CONSUMER_CONCURRENCY: '8',
      RETRY_DELAYS: '0.1,0.2,0.5,1,1',
      RETRY_JITTER: '0',
      LOG_LEVEL: 'warn',
    },
  });
}

/** Every sale, and each of them again at once, soon or much later, under another message id. */
async function publishAll(): Promise<void> {
  const window = 200;
  for (let from = 0; from < SALES; from += window) {
    const part = sales.slice(from, from + window);
    const earlier = sales.slice(Math.max(0, from - window), from);
    const now = part.filter((_, n) => n % 2 === 0);
    const later = earlier.filter((_, n) => n % 2 === 1);
    await Promise.all([...part, ...now, ...later].map((one) => complete(broker, one)));
  }
  const rest = sales.slice(-window).filter((_, n) => n % 2 === 1);
  await Promise.all(rest.map((one) => complete(broker, one)));
}

/** Expects that nothing waits any more, and nothing is dead. */
async function expectDrained(): Promise<void> {
  const queues = ['commissions', 'commissions.suspects', 'commissions.dead'].concat(
    [100, 200, 500, 1000].map((ms) => `commissions.retry.${ms}`),
  );
  const depths = await Promise.all(
    queues.map(async (queue) => [queue, (await broker.depth(queue)).ready]),
  );
  expect(depths).toEqual(queues.map((queue) => [queue, 0]));
}

it('posts each of 10,000 messages’ 5,000 sales once while one of four consumers is killed every second', async () => {
  const running = await Promise.all(Array.from({ length: PROCESSES }, () => start()));
  const drain = new AbortController();
  let kills = 0;
  const killing = (async () => {
    while (!drain.signal.aborted && kills < MAX_KILLS) {
      await sleep(1_000);
      const victim = kills++ % PROCESSES;
      await running[victim]!.kill('SIGKILL');
      running[victim] = await start(false);
    }
  })();

  await publishAll();
  await eventually(expectDrained, { timeoutMs: 100_000, intervalMs: 200 });
  drain.abort();
  await killing;
  await eventually(async () =>
    expect(await db.query('SELECT count(DISTINCT sale_id)::int AS n FROM commission')).toEqual([
      { n: SALES },
    ]),
  );
  // What a consumer still held would become ready again with its end.
  for (const service of running) {
    await service.ready();
    expect(await service.stop()).toEqual({ code: 0, signal: null });
  }
  await expectDrained();

  expect(kills).toBeGreaterThan(5);
  expect(
    await db.query('SELECT sale_id FROM commission GROUP BY sale_id HAVING count(*) > 1'),
  ).toEqual([]);
  const posted = await db.query<{ sale_id: string }>('SELECT sale_id FROM commission');
  expect(new Set(posted.map((row) => row.sale_id))).toEqual(
    new Set(sales.map((one) => one.saleId)),
  );
  const balances = await db.query<{ salesperson_id: string; total_cents: string }>(
    'SELECT salesperson_id, total_cents FROM salesperson_balance',
  );
  expect(new Map(balances.map((row) => [row.salesperson_id, BigInt(row.total_cents)]))).toEqual(
    owed(),
  );
}, 180_000);
