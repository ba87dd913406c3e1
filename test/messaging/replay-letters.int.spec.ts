import { DeadLetters, PermanentError } from '../../src/messaging/index.js';
import { eventually, useCleanup } from '../support/index.js';
import { effects, place, settled, startOrders, type OrderService } from './orders.js';

const cleanup = useCleanup();
let service: OrderService;
let letters: DeadLetters;

beforeAll(async () => {
  service = await startOrders(cleanup);
  letters = service.app.get(DeadLetters);
});

afterEach(async () => {
  await service.broker.drainQueue('commissions.dead');
});

const body = (orderId: string): string => JSON.stringify({ orderId });

/** A queue whose messages the broker itself moves to the dead letters. */
async function moveByBroker(orderId: string, headers: Record<string, unknown>): Promise<void> {
  await service.broker.withChannel(async (channel) => {
    await channel.assertQueue('other', {
      durable: true,
      arguments: {
        'x-queue-type': 'quorum',
        'x-delivery-limit': 1,
        'x-dead-letter-exchange': '',
        'x-dead-letter-routing-key': 'commissions.dead',
      },
    });
    await channel.bindQueue('other', 'events', 'order.other');
  });
  await service.broker.publish('events', 'order.other', body(orderId), { headers });
}

it('reads a letter that the broker wrote at the delivery limit, and replays it', async () => {
  await moveByBroker('B', { tenant: 'T' });
  await eventually(async () => {
    await service.broker.withChannel(async (channel) => {
      const message = await channel.get('other');
      if (message !== false) channel.reject(message, true);
    });
    expect((await letters.list()).length).toBe(1);
  });
  const [letter] = await letters.list();
  expect(letter).toMatchObject({
    reason: 'delivery-limit',
    attempts: 0,
    queue: 'other',
    exchange: 'events',
    routingKey: 'order.other',
    lastFailedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
  });
  expect(await letters.replay({ all: true })).toMatchObject({ done: 1 });
  const [copy] = await service.broker.drainQueue('other');
  expect(copy!.body.toString()).toBe(body('B'));
  delete copy!.headers['x-delivery-count'];
  expect(copy!.headers).toEqual({
    tenant: 'T',
    'x-original-exchange': 'events',
    'x-original-routing-key': 'order.other',
    'x-dead-history': [expect.objectContaining({ reason: 'delivery-limit' })],
    'x-publish-id': expect.any(String) as string,
  });
});

it('leaves a letter whose properties cannot be written again, and says what to do', async () => {
  service.plans.plan('N', () => {
    throw new PermanentError('no');
  });
  const headers = { big: 'x'.repeat(30_000) };
  await service.broker.publish('events', 'order.placed', body('N'), { headers });
  await eventually(async () =>
    expect(await letters.list()).toMatchObject([{ reason: 'rejected', queue: 'commissions' }]),
  );
  expect(await letters.replay({ all: true })).toMatchObject({
    done: 0,
    failed: [{ why: expect.stringMatching(/publish its body anew.*discard/) as string }],
  });
  expect(await letters.list()).toHaveLength(1);
});

it('leaves a letter whose queue is gone, and goes on with the others', async () => {
  service.plans.plan('K', () => undefined);
  for (const queue of ['removed', 'commissions', 'removed']) {
    await service.broker.sendToQueue('commissions.dead', body('K'), {
      headers: { 'x-original-queue': queue, 'x-original-routing-key': 'order.placed' },
    });
  }
  const result = await letters.replay({ all: true });
  expect(result).toMatchObject({ matched: 3, done: 1, failedCount: 2 });
  expect(result.failed[0]!.why).toMatch(/no queue removed.*"to"/);
  await eventually(async () => expect(await effects(service.db)).toContain('K'));
  expect(await letters.list()).toHaveLength(2);
});

it('lists what somebody put there by hand as unknown, and replays it only to a named queue', async () => {
  service.plans.plan('U', () => undefined);
  await service.broker.sendToQueue(
    'commissions.dead',
    JSON.stringify({ pattern: 'order.placed', data: { orderId: 'U' } }),
  );
  expect(await letters.list()).toMatchObject([{ reason: 'unknown', queue: undefined }]);
  expect(await letters.replay({ all: true })).toMatchObject({
    failed: [{ why: expect.stringContaining('"to"') as string }],
  });
  expect(await letters.replay({ all: true }, { to: 'commissions' })).toMatchObject({ done: 1 });
  await eventually(async () => expect(await effects(service.db)).toContain('U'));
});

it('keeps ten failures of the history at most, and fewer where the headers have no room', async () => {
  const past = Array.from({ length: 12 }, (_, index) => ({
    reason: `r${index}`,
    attempts: 4,
    replayedAt: '2026-01-01T00:00:00.000Z',
  }));
  await service.broker.withChannel((channel) => channel.assertQueue('idle', { durable: true }));
  for (const tenant of ['T', 'x'.repeat(16_000)]) {
    await service.broker.sendToQueue('commissions.dead', body('Y'), {
      headers: { tenant, 'x-original-queue': 'idle', 'x-dead-history': past },
    });
  }
  expect(await letters.replay({ all: true })).toMatchObject({ done: 2 });
  const copies = await service.broker.drainQueue('idle');
  const kept = copies.map(({ headers }) => (headers['x-dead-history'] as unknown[]).length);
  expect(kept[0]).toBe(10);
  expect(kept[1]).toBeGreaterThan(0);
  expect(kept[1]).toBeLessThan(10);
});

it('takes each letter once, also one that fails again before the replay has ended', async () => {
  service.plans.plan('W', () => {
    throw new PermanentError('still not');
  });
  for (let index = 0; index < 30; index++) await place(service.broker, { orderId: 'W' });
  await eventually(async () =>
    expect((await service.broker.depth('commissions.dead')).ready).toBe(30),
  );
  expect(await letters.replay({ all: true })).toMatchObject({ matched: 30, done: 30 });
  await eventually(async () =>
    expect((await service.broker.depth('commissions.dead')).ready).toBe(30),
  );
  expect(service.plans.runs('W')).toBe(60);
  expect((await letters.list()).map(({ history }) => history.length)).toEqual(
    Array.from({ length: 30 }, () => 1),
  );
  await settled(service);
});
