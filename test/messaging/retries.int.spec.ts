import { RetryLaterError } from '../../src/messaging/index.js';
import { atPoint, cut, eventually, holds, useCleanup } from '../support/index.js';
import { server } from '../support/servers.js';
import {
  deadLetter,
  effects,
  gate,
  place,
  settled,
  startOrders,
  type OrderService,
} from './orders.js';

const fails = (): never => {
  throw new Error('the shop is closed');
};

describe('a handler that fails', () => {
  const cleanup = useCleanup();
  let service: OrderService;

  beforeAll(async () => {
    service = await startOrders(cleanup);
  });

  it('rolls back, comes back after each delay, and is processed when it succeeds', async () => {
    service.plans.plan('F', (run) => (run <= 3 ? fails() : undefined));
    await place(service.broker, { orderId: 'F' });
    await eventually(async () => expect(await effects(service.db)).toEqual(['F']));
    expect(service.plans.runs('F')).toBe(4);
    await settled(service);
    expect((await service.broker.depth('commissions.dead')).ready).toBe(0);
  });

  it('is a dead letter after the last attempt, with when and how often, and the body as it came', async () => {
    service.plans.plan('X', fails);
    const body = '{ "orderId" : "X", "café": "\\u00e9" }';
    const before = new Date().toISOString();
    await service.broker.publish('events', 'order.placed', body);
    const { body: dead, headers } = await deadLetter(service.broker);
    expect(dead.toString()).toBe(body);
    expect(headers).toMatchObject({
      'x-dead-reason': 'attempts-exhausted',
      'x-attempt': 4,
      'x-error-name': 'Error',
      'x-error-message': 'the shop is closed',
      'x-original-exchange': 'events',
      'x-original-routing-key': 'order.placed',
    });
    expect(headers).not.toHaveProperty('x-death');
    expect(String(headers['x-first-failed-at']) >= before).toBe(true);
    expect(String(headers['x-last-failed-at']) > String(headers['x-first-failed-at'])).toBe(true);
    expect(service.plans.runs('X')).toBe(4);
    expect(await effects(service.db)).not.toContain('X');
    await settled(service);
  });

  it('does not hold up the messages behind it', async () => {
    service.plans.plan('S', fails);
    await place(service.broker, { orderId: 'S' });
    const others = Array.from({ length: 20 }, (_, index) => `other-${index}`);
    await Promise.all(others.map((orderId) => place(service.broker, { orderId })));
    await eventually(async () =>
      expect(await effects(service.db)).toEqual(expect.arrayContaining(others)),
    );
    await deadLetter(service.broker);
  });

  it('counts its own attempts, and takes nothing else for their number', async () => {
    for (const attempt of ['3', -1, 2.5, true, null]) {
      const orderId = `A-${String(attempt)}`;
      service.plans.plan(orderId, fails);
      const options = { headers: { 'x-attempt': attempt } };
      await service.broker.publish('events', 'order.placed', { orderId }, options);
      expect((await deadLetter(service.broker)).headers).toMatchObject({ 'x-attempt': 4 });
      expect(service.plans.runs(orderId)).toBe(4);
    }
  });
});

describe('the copy that waits', () => {
  const cleanup = useCleanup();
  let service: OrderService;

  beforeAll(async () => {
    service = await startOrders(cleanup, { config: { retryDelaysMs: [3_600_000] } });
    service.plans.plan('C', fails);
  });

  it('carries what the producer said, and nothing that would send it elsewhere or end it', async () => {
    const { broker } = service;
    await broker.withChannel(async (channel) => {
      await channel.assertQueue('elsewhere', { durable: true });
      await channel.bindQueue('elsewhere', 'events', 'elsewhere');
    });
    await broker.publish('events', 'order.placed', '{"orderId":"C"}', {
      messageId: 'm-1',
      correlationId: 'c-1',
      contentType: 'application/json',
      contentEncoding: 'utf-8',
      priority: 3,
      timestamp: 1_767_225_600,
      expiration: '3000000',
      persistent: false,
      CC: ['elsewhere'],
      headers: {
        tenant: 'T',
        at: { '!': 'timestamp', value: 1_767_225_600 },
        'x-death': [{ count: 7, reason: 'expired', queue: 'q', exchange: 'e' }],
        'x-first-death-queue': 'q',
        'x-publish-id': 'the producer’s own',
      },
    });
    await eventually(async () =>
      expect((await broker.depth('commissions.retry.3600000')).ready).toBe(1),
    );
    const [copy] = await broker.peek('commissions.retry.3600000');
    expect(copy!.body.toString()).toBe('{"orderId":"C"}');
    const { properties, headers } = copy!;
    expect(properties).toMatchObject({
      messageId: 'm-1',
      correlationId: 'c-1',
      contentType: 'application/json',
      contentEncoding: 'utf-8',
      priority: 3,
      timestamp: 1_767_225_600,
      deliveryMode: 2,
      expiration: undefined,
    });
    expect(headers).toMatchObject({
      tenant: 'T',
      at: { '!': 'timestamp', value: 1_767_225_600 },
      'x-attempt': 1,
    });
    for (const name of ['CC', 'x-death', 'x-first-death-queue', 'x-dead-reason'])
      expect(headers).not.toHaveProperty(name);
    expect(headers['x-publish-id']).not.toBe('the producer’s own');
    // One message by CC, and none by the copy.
    expect((await broker.depth('elsewhere')).ready).toBe(1);
    await settled(service);
  });

  it('stays a little shorter or longer than the delay, and never shorter than a handler asks', async () => {
    const { broker, plans } = await startOrders(cleanup, {
      config: { retryDelaysMs: [3_600_000], retryJitter: 0.2 },
    });
    const queues = ['2880000', '3600000', '4320000'].map((ms) => `commissions.retry.${ms}`);
    const waiting = (): Promise<number[]> =>
      Promise.all(queues.map(async (queue) => (await broker.depth(queue)).ready));
    const giveBack = async (kind: string, act: () => never): Promise<number[]> => {
      // So many that each queue gets some.
      for (let index = 0; index < 40; index++) {
        plans.plan(`${kind} ${index}`, act);
        await place(broker, { orderId: `${kind} ${index}` });
      }
      const total = async (): Promise<number> => (await waiting()).reduce((sum, n) => sum + n);
      await eventually(async () => expect(await total()).toBe(40));
      const counts = await waiting();
      for (const queue of queues) await broker.drainQueue(queue);
      return counts;
    };
    expect(Math.min(...(await giveBack('fails', fails)))).toBeGreaterThan(0);
    const [shorter, ...enough] = await giveBack('later', () => {
      throw new RetryLaterError(3_600_000);
    });
    expect(shorter).toBe(0);
    expect(Math.min(...enough)).toBeGreaterThan(0);
  });

  it('keeps the name of another user as a header, because the broker would refuse it', async () => {
    const { broker } = service;
    await broker.drainQueue('commissions.retry.3600000');
    const userId = decodeURIComponent(new URL(server('rabbitmqUrl')).username);
    await broker.publish('events', 'order.placed', '{"orderId":"C"}', { userId });
    await eventually(async () =>
      expect((await broker.depth('commissions.retry.3600000')).ready).toBe(1),
    );
    const [copy] = await broker.drainQueue('commissions.retry.3600000');
    expect(copy!.properties.userId).toBeUndefined();
    expect(copy!.headers).toMatchObject({ 'x-original-user-id': userId });
  });
});

describe('a crash between the copy and the acknowledgement', () => {
  const cleanup = useCleanup('each');

  it('leaves two copies, and one effect', async () => {
    const service = await startOrders(cleanup, { config: { retryDelaysMs: [300] } });
    service.plans.plan('K', (run) => (run === 1 ? fails() : undefined));
    service.rabbit.intercept(atPoint('copy-confirmed', cut));
    await place(service.broker, { orderId: 'K' });
    await eventually(() => expect(service.settlements.acked).toBe(2));
    expect(service.rabbit.cuts).toBe(1);
    expect(await effects(service.db)).toEqual(['K']);
    // Both copies were delivered: the original again, and the one that waited.
    expect(service.settlements.delivered).toBe(3);
    await settled(service);
  });

  it('keeps the original until the broker has confirmed the copy', async () => {
    const service = await startOrders(cleanup);
    service.plans.plan('L', (run) => (run === 1 ? fails() : undefined));
    service.rabbit.intercept(atPoint('copy-published', cut));
    await place(service.broker, { orderId: 'L' });
    await eventually(() => expect(service.rabbit.cuts).toBe(1));
    await eventually(async () => expect(await effects(service.db)).toEqual(['L']), {
      timeoutMs: 20_000,
    });
    await settled(service);
  });

  it('waits with the acknowledgement for a slow confirm', async () => {
    const service = await startOrders(cleanup, { config: { retryDelaysMs: [3_600_000] } });
    const failed = gate();
    service.plans.plan('W', async () => {
      await failed.opened;
      fails();
    });
    await place(service.broker, { orderId: 'W' });
    await eventually(() => expect(service.plans.runs('W')).toBe(1));
    service.rabbit.stall('toClient');
    failed.open();
    await eventually(async () =>
      expect((await service.broker.depth('commissions.retry.3600000')).ready).toBe(1),
    );
    await holds(() => expect(service.settlements.acked).toBe(0), 200);
    service.rabbit.resume();
    await eventually(() => expect(service.settlements.acked).toBe(1));
  });
});
