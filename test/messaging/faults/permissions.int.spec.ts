import { eventually, holds, useCleanup, type Permissions } from '../../support/index.js';
import { effects, place, readiness, settled, startOrders, type OrderService } from '../orders.js';

const cleanup = useCleanup();
const everything: Permissions = { configure: '.*', write: '.*', read: '.*' };
let service: OrderService;
let password: string;

beforeAll(async () => {
  service = await startOrders(cleanup, { config: { concurrency: 4 } });
  password = new URL(service.broker.url).password;
});

beforeEach(() => service.db.query('TRUNCATE effect'));

afterEach(async () => {
  await service.broker.setPassword(password);
  await service.broker.permit(everything);
});

async function isReady(status: 200 | 503): Promise<void> {
  await eventually(async () => expect(await readiness(service.app)).toMatchObject({ status }));
}

/** One that succeeds and one that needs a copy, placed while something is wrong. */
async function placeTwo(name: string): Promise<string[]> {
  const orders = [`${name}, fails once`, `${name}, succeeds`];
  service.plans.plan(orders[0]!, (run) => {
    if (run === 1) throw new Error('fails once');
  });
  for (const orderId of orders) await place(service.broker, { orderId });
  return orders;
}

/** Both are applied once, nothing is left, and one consumer is there. */
async function allApplied(orders: string[]): Promise<void> {
  await isReady(200);
  await eventually(async () => expect((await effects(service.db)).sort()).toEqual(orders), {
    timeoutMs: 20_000,
  });
  await settled(service);
  expect((await service.broker.depth('commissions.dead')).ready).toBe(0);
}

it.each<[string, () => Promise<void>]>([
  ['may not write', () => service.broker.permit({ ...everything, write: '' })],
  ['may not read', () => service.broker.permit({ ...everything, read: '' })],
  ['may not configure', () => service.broker.permit({ ...everything, configure: '' })],
  ['may not use the vhost', () => service.broker.permit()],
  ['has another password', () => service.broker.setPassword('another')],
])(
  'waits while its user %s, loses nothing, and goes on by itself',
  async (name, revoke) => {
    await revoke();
    await service.broker.closeAllConnections('by an operator');
    await isReady(503);
    const orders = await placeTwo(name);
    await holds(async () => {
      expect((await readiness(service.app)).status).toBe(503);
      expect(await effects(service.db)).toEqual([]);
      expect((await service.broker.depth('commissions')).ready).toBe(2);
    }, 2_500);

    await service.broker.setPassword(password);
    await service.broker.permit(everything);

    await allApplied(orders);
  },
  60_000,
);

it('keeps what has failed while its open connections may not write, and processes the rest', async () => {
  // A channel that has published before goes on, because the broker remembers what it may do.
  await service.broker.closeAllConnections('by an operator');
  await eventually(async () => expect(await service.broker.connections()).toBe(2));
  await isReady(200);
  await service.broker.permit({ ...everything, write: '' });
  const orders = await placeTwo('open');

  await eventually(async () => expect(await effects(service.db)).toEqual([orders[1]]));
  await holds(async () => {
    expect(service.settlements.unsettled).toBe(1);
    expect(await effects(service.db)).toEqual([orders[1]]);
  }, 1_500);
  await service.broker.permit(everything);

  await allApplied(orders);
}, 60_000);
