import {
  eventually,
  holds,
  startOwnBroker,
  useCleanup,
  type OwnBroker,
} from '../../support/index.js';
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

it('stores one copy of each message that failed, however long the alarm was', async () => {
  const { delivered } = service.settlements;
  const { orders, letGo } = await inWork('long');
  await node.alarm('memory');
  letGo();
  // Longer than any publish is waited for.
  await holds(() => expect(service.settlements.unsettled).toBeGreaterThanOrEqual(3), 13_000);
  await node.clearAlarm();
  await drained(orders, delivered);
}, 60_000);
