import { eventually, useCleanup } from '../../support/index.js';
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
  service = await startOrders(cleanup, { config: { concurrency: 4 } });
});

/** Until a heartbeat of ten seconds counts as lost. */
const silence = { timeoutMs: 35_000, intervalMs: 100 };

it('notices a broker that falls silent, and is back once with all that was in work', async () => {
  const slow = gate();
  service.plans.plan('in work', () => slow.opened);
  await place(service.broker, { orderId: 'in work' });
  await eventually(() => expect(service.plans.runs('in work')).toBe(1));

  service.rabbit.stall();
  await place(service.broker, { orderId: 'meanwhile' });
  await eventually(async () => expect((await readiness(service.app)).status).toBe(503), silence);
  slow.open();
  service.rabbit.resume();

  await eventually(async () => expect(await effects(service.db)).toEqual(['in work', 'meanwhile']));
  await settled(service);
  await eventually(async () => expect((await readiness(service.app)).status).toBe(200));
  await eventually(async () => expect(await service.broker.connections()).toBe(2));
  expect(service.plans.runs('in work')).toBe(1);
  expect((await service.broker.depth('commissions.dead')).ready).toBe(0);
}, 60_000);

it('publishes copies again after the broker was silent', async () => {
  service.plans.plan('fails once', (run) => {
    if (run === 1) throw new Error('fails once');
  });
  await place(service.broker, { orderId: 'fails once' });
  await eventually(async () => expect(await effects(service.db)).toContain('fails once'));
  await settled(service);
});
