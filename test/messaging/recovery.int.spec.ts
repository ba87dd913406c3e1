import { PermanentError } from '../../src/messaging/index.js';
import { eventually, holds, useCleanup } from '../support/index.js';
import {
  effects,
  gate,
  place,
  readiness,
  settled,
  startOrders,
  type OrderService,
} from './orders.js';

const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  service = await startOrders(cleanup, { config: { concurrency: 4 } });
});

beforeEach(() => service.db.query('DELETE FROM effect'));

async function consumesOnce(): Promise<void> {
  await eventually(async () => {
    expect(await service.broker.depth('commissions')).toMatchObject({ consumers: 1 });
    expect(await readiness(service.app)).toMatchObject({ status: 200 });
  });
}

async function becomesUnready(): Promise<void> {
  await eventually(
    async () =>
      expect(await readiness(service.app)).toMatchObject({
        status: 503,
        body: expect.stringContaining('not connected to the queue') as string,
      }),
    { intervalMs: 5 },
  );
}

it('is back by itself when an operator closes its connections, once', async () => {
  await eventually(async () => expect(await service.broker.connections()).toBe(2));
  await Promise.all([service.broker.closeAllConnections(), becomesUnready()]);
  await place(service.broker, { orderId: 'closed' });
  await eventually(async () => expect(await effects(service.db)).toEqual(['closed']));
  await consumesOnce();
});

it('is back by itself after its queue was deleted', async () => {
  await Promise.all([service.broker.deleteQueue('commissions'), becomesUnready()]);
  await consumesOnce();
  await place(service.broker, { orderId: 'deleted' });
  await eventually(async () => expect(await effects(service.db)).toEqual(['deleted']));
  await settled(service);
});

it('declares a queue for copies again that an operator has deleted', async () => {
  await service.broker.deleteQueue('commissions.retry.50');
  service.plans.plan('again', (run) => {
    if (run === 1) throw new Error('fails');
  });
  await place(service.broker, { orderId: 'again' });
  await eventually(async () => expect(await effects(service.db)).toEqual(['again']));
  await consumesOnce();
});

it('swallows an acknowledgement that comes too late, and applies the message once', async () => {
  const slow = gate();
  service.plans.plan('late', () => slow.opened);
  await place(service.broker, { orderId: 'late' });
  await eventually(() => expect(service.plans.runs('late')).toBe(1));
  await service.broker.closeAllConnections('delivery acknowledgement timed out');
  const { delivered } = service.settlements;
  // The same message comes again, and waits for the first run of it.
  await eventually(() => expect(service.settlements.delivered).toBe(delivered + 1));
  slow.open();
  await eventually(() => expect(service.app.log()).toContain('Not settled, will be redelivered'));
  await settled(service);
  expect(service.plans.runs('late')).toBe(1);
  expect(await effects(service.db)).toEqual(['late']);
  await consumesOnce();
});

it('gives a message up once whose failure comes too late to be settled', async () => {
  const { broker, plans, settlements } = service;
  const slow = gate();
  plans.plan('fails late', async () => {
    await slow.opened;
    throw new PermanentError('never');
  });
  await place(broker, { orderId: 'fails late' });
  await eventually(() => expect(plans.runs('fails late')).toBe(1));
  const { delivered } = settlements;
  await broker.closeAllConnections();
  await eventually(() => expect(settlements.delivered).toBe(delivered + 1));
  slow.open();
  await eventually(() => expect(plans.runs('fails late')).toBe(2));
  await settled(service);
  // Not one more of the run that could not be settled.
  expect(await broker.drainQueue('commissions.dead')).toHaveLength(1);
  await consumesOnce();
});

it('has one consumer after an outage that ends while it reconnects', async () => {
  for (let round = 0; round < 3; round++) {
    service.postgres.refuse();
    service.postgres.cut();
    await place(service.broker, { orderId: `round-${round}` });
    await eventually(async () =>
      expect(await readiness(service.app)).toMatchObject({
        body: expect.stringContaining('paused during an outage') as string,
      }),
    );
    await service.postgres.accept();
    service.rabbit.cut();
    service.rabbit.delay(40);
    await consumesOnce();
    service.rabbit.delay(0);
  }
  await settled(service);
  expect(await effects(service.db)).toEqual(['round-0', 'round-1', 'round-2']);
});

it('goes on after the broker was away, however often it said so', async () => {
  service.rabbit.refuse();
  service.rabbit.cut();
  await place(service.broker, { orderId: 'away' });
  await becomesUnready();
  await holds(async () => expect((await readiness(service.app)).status).toBe(503), 1_200);
  await service.rabbit.accept();
  await consumesOnce();
  await settled(service);
  expect(await effects(service.db)).toEqual(['away']);
});

it('delivers on one connection no more than its concurrency, also after a reconnect', async () => {
  const busy = gate();
  const orders = Array.from({ length: 8 }, (_, index) => `busy-${index}`);
  for (const orderId of orders) service.plans.plan(orderId, () => busy.opened);
  for (const orderId of orders) await place(service.broker, { orderId });
  await eventually(() => expect(service.settlements.unsettled).toBe(4));
  await holds(() => expect(service.settlements.unsettled).toBe(4), 200);
  busy.open();
  await settled(service);
  expect(await effects(service.db)).toEqual(orders);
});
