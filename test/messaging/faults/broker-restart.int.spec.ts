import {
  createTestBroker,
  createTestDatabase,
  eventually,
  startOwnBroker,
  startService,
  useCleanup,
  type OwnBroker,
} from '../../support/index.js';
import { effects, place, readiness, settled, startOrders, type OrderService } from '../orders.js';

const cleanup = useCleanup();
let node: OwnBroker;
let service: OrderService;

beforeAll(async () => {
  node = cleanup.use(await startOwnBroker());
  service = await startOrders(cleanup, { on: node, config: { concurrency: 4 } });
}, 60_000);

/** Goes on until told to stop, as careful producers do: each again until the broker has confirmed. */
function producing(name: string): { placed: string[]; stop: () => Promise<unknown> } {
  const placed: string[] = [];
  const told = new AbortController();
  const produce = async (producer: string): Promise<void> => {
    for (let index = 0; !told.signal.aborted; index++) {
      const orderId = `${producer} ${index}`;
      // Some fail once, so that copies are on their way as well.
      if (index % 10 === 0) service.plans.plan(orderId, failOnce);
      await eventually(() => place(service.broker, { orderId }), { timeoutMs: 30_000 });
      placed.push(orderId);
    }
  };
  const producers = Promise.all(['a', 'b', 'c'].map((one) => produce(`${name} ${one}`)));
  return {
    placed,
    stop: () => {
      told.abort();
      return producers;
    },
  };
}

function failOnce(run: number): void {
  if (run === 1) throw new Error('fails once');
}

const none = { missing: [], repeated: [] };

/** Named, because a list of all would say it less clearly. */
async function difference(placed: string[]): Promise<{ missing: string[]; repeated: string[] }> {
  const applied = await effects(service.db);
  return {
    missing: placed.filter((orderId) => !applied.includes(orderId)),
    repeated: applied.filter((orderId, index) => applied[index - 1] === orderId),
  };
}

async function unready(): Promise<void> {
  await eventually(async () => expect((await readiness(service.app)).status).toBe(503));
}

it.each([
  ['restarted', 'SIGTERM'],
  ['killed and started again', 'SIGKILL'],
] as const)(
  'loses nothing when the node is %s under load',
  async (how, signal) => {
    await service.db.query('TRUNCATE effect');
    const { placed, stop } = producing(how);
    await eventually(() => expect(placed.length).toBeGreaterThan(100));

    await Promise.all([node.stop(signal), unready()]);
    const before = placed.length;
    await node.start();
    await eventually(() => expect(placed.length).toBeGreaterThan(before + 100));

    await stop();
    const waiting = { timeoutMs: 20_000 };
    await eventually(async () => expect(await difference(placed)).toEqual(none), waiting);
    await settled(service);
    expect((await service.broker.depth('commissions.dead')).ready).toBe(0);
    expect((await readiness(service.app)).status).toBe(200);
  },
  90_000,
);

it('stops with 0 while it reconnects to a node that is down', async () => {
  const db = cleanup.use(await createTestDatabase());
  const broker = cleanup.use(await createTestBroker(node));
  const process = cleanup.use(await startService({ databaseUrl: db.url, rabbitmqUrl: broker.url }));
  await node.stop('SIGKILL');
  await eventually(async () =>
    expect((await fetch(`${process.url}/health/ready`)).status).toBe(503),
  );

  expect(await process.stop(5_000)).toEqual({ code: 0, signal: null });

  await node.start();
  await eventually(async () =>
    expect(await broker.depth('commissions')).toEqual({ ready: 0, consumers: 0 }),
  );
}, 60_000);
