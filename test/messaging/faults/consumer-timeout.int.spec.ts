import { eventually, startOwnBroker, useCleanup } from '../../support/index.js';
import {
  effects,
  gate,
  place,
  readiness,
  settled,
  startOrders,
  type OrderService,
} from '../orders.js';

const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  const on = cleanup.use(await startOwnBroker({ consumerTimeoutMs: 1_000 }));
  service = await startOrders(cleanup, { on, config: { concurrency: 4 } });
}, 60_000);

beforeEach(() => service.db.query('TRUNCATE effect'));

async function consumesOnce(): Promise<void> {
  await settled(service);
  expect((await readiness(service.app)).status).toBe(200);
  expect((await service.broker.depth('commissions.dead')).ready).toBe(0);
}

/** The broker has closed the channel, and delivers again what was open on it. */
async function deliveredAgain(times: number): Promise<void> {
  const { delivered } = service.settlements;
  await eventually(() =>
    expect(service.settlements.delivered).toBeGreaterThanOrEqual(delivered + times),
  );
}

it.each([
  ['once', 1],
  ['several times', 3],
])('applies a message once that is slower %s than the broker allows', async (name, times) => {
  const slow = gate();
  service.plans.plan(name, () => slow.opened);
  await place(service.broker, { orderId: name });
  await eventually(() => expect(service.plans.runs(name)).toBe(1));

  await deliveredAgain(times);
  // Its neighbours do not wait for it, and it is alone in being late.
  const neighbours = Array.from({ length: 8 }, (_, index) => `beside ${name} ${index}`);
  for (const orderId of neighbours) await place(service.broker, { orderId });
  await eventually(async () => expect(await effects(service.db)).toEqual(neighbours));
  slow.open();

  await consumesOnce();
  expect(service.plans.runs(name)).toBe(1);
  expect(await effects(service.db)).toEqual([...neighbours, name]);
  expect(service.app.log()).toContain('Not settled, will be redelivered');
});

it('applies once what was in flight beside a message that is too slow', async () => {
  const slow = gate();
  const orders = ['beside 1', 'beside 2', 'slowest'];
  for (const orderId of orders) {
    service.plans.plan(orderId, () => slow.opened);
    await place(service.broker, { orderId });
  }
  await eventually(() => expect(service.settlements.unsettled).toBe(3));
  await deliveredAgain(3);
  slow.open();

  await consumesOnce();
  expect(orders.map((orderId) => service.plans.runs(orderId))).toEqual([1, 1, 1]);
  expect(await effects(service.db)).toEqual(orders);
});

it('retries a message whose failure comes too late to be settled, and not more often', async () => {
  const slow = gate();
  service.plans.plan('fails late', async (run) => {
    await slow.opened;
    if (run === 1) throw new Error('fails late');
  });
  await place(service.broker, { orderId: 'fails late' });
  await deliveredAgain(2);
  slow.open();

  await consumesOnce();
  expect(service.plans.runs('fails late')).toBe(2);
  expect(await effects(service.db)).toEqual(['fails late']);
});
