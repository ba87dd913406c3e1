import { atPoint, eventually, holds, stall, useCleanup } from '../support/index.js';
import {
  deadLetter,
  effects,
  gate,
  place,
  readiness,
  settled,
  startOrders,
  type OrderService,
} from './orders.js';

const SUSPECTS = 'commissions.suspects';
const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  service = await startOrders(cleanup, { config: { concurrency: 4 } });
});

beforeEach(() => service.db.query('TRUNCATE effect'));

/** Messages that have been delivered in vain so often, for a service that is back afterwards. */
async function deliveredInVain(times: number, orderIds: string[]): Promise<void> {
  const { broker, rabbit } = service;
  rabbit.refuse();
  rabbit.cut();
  await eventually(async () => expect((await broker.depth('commissions')).consumers).toBe(0));
  for (const orderId of orderIds) await place(broker, { orderId });
  for (let time = 0; time < times; time++) await broker.peek('commissions', orderIds.length);
  await rabbit.accept();
}

it('runs what was delivered once in vain with the others', async () => {
  await deliveredInVain(1, ['once']);
  await eventually(async () => expect(await effects(service.db)).toEqual(['once']));
  await settled(service);
  expect(service.app.log()).not.toContain('runs alone now');
});

it('runs what was delivered twice in vain one at a time, while others pass', async () => {
  const slow = gate();
  const suspects = ['A', 'B', 'C'];
  for (const orderId of suspects) service.plans.plan(orderId, () => slow.opened);
  await deliveredInVain(2, suspects);
  await eventually(async () => {
    expect(await service.broker.depth('commissions')).toEqual({ ready: 0, consumers: 1 });
    expect(await service.broker.depth(SUSPECTS)).toEqual({ ready: 2, consumers: 1 });
  });
  await place(service.broker, { orderId: 'passes' });
  await eventually(async () => expect(await effects(service.db)).toEqual(['passes']));
  await eventually(() => expect(service.settlements.unsettled).toBe(1));
  slow.open();
  await eventually(async () => expect(await effects(service.db)).toEqual([...suspects, 'passes']));
  await settled(service);
});

it('keeps a message in its place until its copy among the suspects is confirmed', async () => {
  const { rabbit, settlements } = service;
  const { acked, delivered } = settlements;
  const { opened, open } = gate();
  const stop = rabbit.intercept(atPoint('published', stall(opened)));
  await deliveredInVain(2, ['kept']);
  // The copy runs, and its handler is done; the original still waits for the confirm.
  await eventually(() => expect(settlements.delivered).toBe(delivered + 2));
  await eventually(() => expect(settlements.acked).toBe(acked + 1));
  await holds(() => expect(settlements).toMatchObject({ acked: acked + 1, unsettled: 1 }), 200);
  open();
  stop();
  await settled(service);
  expect(settlements.acked).toBe(acked + 2);
  expect(await effects(service.db)).toEqual(['kept']);
});

it('gives a suspect up that is delivered in vain again and again, unless it succeeds before', async () => {
  const { broker, rabbit } = service;
  rabbit.refuse();
  rabbit.cut();
  await eventually(async () => expect((await broker.depth(SUSPECTS)).consumers).toBe(0));
  const send = (orderId: string): Promise<void> =>
    broker.sendToQueue(SUSPECTS, { orderId }, { type: 'order.placed' });
  await send('crashes');
  for (let time = 0; time < 3; time++) await broker.peek(SUSPECTS);
  await send('succeeds');
  await rabbit.accept();
  expect((await deadLetter(broker)).headers).toMatchObject({
    'x-dead-reason': 'process-crashed',
    'x-original-queue': 'commissions',
  });
  await eventually(async () => expect(await effects(service.db)).toEqual(['succeeds']));
  expect(service.plans.runs('crashes')).toBe(0);
  await settled(service);
  expect((await readiness(service.app)).status).toBe(200);
});
