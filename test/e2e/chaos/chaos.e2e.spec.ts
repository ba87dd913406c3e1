import { setTimeout as sleep } from 'node:timers/promises';
import {
  createTestBroker,
  createTestDatabase,
  eventually,
  startOwnBroker,
  useCleanup,
  type OwnBroker,
  type TestBroker,
  type TestDatabase,
} from '../../support/index.js';
import { integer, oneOf, seeded } from '../../support/random.js';
import { sale, type Sale } from '../sales.js';
import { settleAccounts } from './checker.js';
import { Replica } from './replica.js';

/** More of them, and others: CHAOS_FAULTS=200 CHAOS_SEED=7 npm test -- test/e2e/chaos */
const FAULTS = Number(process.env.CHAOS_FAULTS ?? 15);
const SEED = Number(process.env.CHAOS_SEED ?? 1);
const REPLICAS = 3;
const SETTINGS = {
  CONSUMER_CONCURRENCY: '8',
  RETRY_DELAYS: '0.1,0.2,0.5,1,1',
  RETRY_JITTER: '0',
  LOG_LEVEL: 'warn',
};
const QUEUES = [
  'commissions',
  'commissions.suspects',
  ...[100, 200, 500, 1_000].map((ms) => `commissions.retry.${ms}`),
];

const cleanup = useCleanup();
const random = seeded(SEED);
let node: OwnBroker;
let db: TestDatabase;
let broker: TestBroker;
let replicas: Replica[];

beforeAll(async () => {
  node = cleanup.use(await startOwnBroker());
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker(node));
  replicas = await Promise.all(
    Array.from({ length: REPLICAS }, () =>
      Replica.create(cleanup, { databaseUrl: db.url, rabbitmqUrl: broker.url }, SETTINGS),
    ),
  );
  await Promise.all(replicas.map((replica) => replica.ready()));
}, 60_000);

const someone = (): Replica => oneOf(random, replicas);

/** What happens, and how often of a hundred times. */
const faults: [weight: number, name: string, happen: () => Promise<void>][] = [
  [20, 'a consumer is killed', () => someone().crash()],
  [8, 'a consumer is redeployed', () => someone().redeploy()],
  [22, 'connections to RabbitMQ are cut', async () => someone().rabbit.cut()],
  [15, 'connections to PostgreSQL are cut', async () => someone().postgres.cut()],
  [10, 'PostgreSQL is away for a moment', () => away(someone())],
  [15, 'everybody loses every connection', async () => replicas.forEach(cutAll)],
  [10, 'the broker is killed', () => node.restart('SIGKILL')],
];

function cutAll({ rabbit, postgres }: Replica): void {
  rabbit.cut();
  postgres.cut();
}

async function away({ postgres }: Replica): Promise<void> {
  postgres.refuse();
  postgres.cut();
  await sleep(integer(random, 100, 1_000));
  await postgres.accept();
}

function nextFault(): (typeof faults)[number] {
  let left = integer(random, 0, 99);
  return faults.find(([weight]) => (left -= weight) < 0)!;
}

/** Mostly new sales; repeats, sales that can never succeed, and known ones with another amount. */
function nextSale(n: number, earlier: readonly Sale[]): Sale {
  const kind = earlier.length === 0 ? 0 : integer(random, 0, 99);
  if (kind < 75) {
    return sale({ saleId: `S-${n}`, salespersonId: `P-${n % 10}`, amountCents: 2_000 * (n + 1) });
  }
  if (kind < 95) return oneOf(random, earlier);
  if (kind < 98) return sale({ saleId: `U-${n}`, productType: 'unheard-of' });
  return { ...oneOf(random, earlier), amountCents: 1_000 };
}

/** Until the broker has confirmed, as a producer must; what is in doubt is published again. */
async function publish(one: Sale): Promise<void> {
  await eventually(() => broker.publish('events', 'sale.completed', one), {
    timeoutMs: 60_000,
    intervalMs: 100,
  });
}

/** Publishes until told to stop; resolves with what was confirmed. */
async function produce(stop: AbortSignal): Promise<Sale[]> {
  const confirmed: Sale[] = [];
  let n = 0;
  const line = async (): Promise<void> => {
    while (!stop.aborted) {
      const next = nextSale(n++, confirmed);
      await publish(next);
      confirmed.push(next);
      await sleep(integer(random, 5, 40));
    }
  };
  await Promise.all(Array.from({ length: 6 }, line));
  return confirmed;
}

/** Resolves with how often each fault has happened. */
async function bringAbout(count: number): Promise<Record<string, number>> {
  const happened: Record<string, number> = {};
  for (let index = 0; index < count; index++) {
    const [, name, happen] = nextFault();
    happened[name] = (happened[name] ?? 0) + 1;
    await happen();
    await sleep(integer(random, 0, 600));
  }
  return happened;
}

async function expectDrained(): Promise<void> {
  const depths = await Promise.all(
    QUEUES.map(async (queue) => [queue, (await broker.depth(queue)).ready]),
  );
  expect(depths).toEqual(QUEUES.map((queue) => [queue, 0]));
}

it(`loses nothing and does nothing twice, whatever happens (${FAULTS} faults, seed ${SEED})`, async () => {
  const stop = new AbortController();
  const producing = produce(stop.signal);
  const happened = await bringAbout(FAULTS).finally(() => stop.abort());
  const confirmed = await producing;
  await Promise.all(replicas.map((replica) => replica.ready()));

  await eventually(expectDrained, { timeoutMs: 60_000, intervalMs: 200 });
  for (const queue of ['commissions', 'commissions.suspects'])
    expect(await broker.depth(queue)).toEqual({ ready: 0, consumers: REPLICAS });
  for (const replica of replicas) {
    expect(replica.output()).not.toMatch(/UnhandledRejection|uncaught/i);
    await replica.stop();
  }
  // What a consumer still held is ready again now.
  await expectDrained();

  const letters = await broker.drainQueue('commissions.dead');
  const { deadLetters, ...accounts } = await settleAccounts(db, confirmed, letters);
  process.stdout.write(
    `${JSON.stringify({ happened, confirmed: confirmed.length, deadLetters })}\n`,
  );
  expect(accounts).toEqual({ lost: [], twice: [], invented: [] });
  // Nothing was burned: only what can never succeed is dead.
  expect(Object.keys(deadLetters).toSorted()).toEqual(['key-reuse', 'permanent-error']);
}, 1_800_000);
