import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { DataSource } from 'typeorm';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { ConsumeFrom, PermanentError, Retry, RetryLaterError } from '../../src/messaging/index.js';
import { eventually, holds, useCleanup } from '../support/index.js';
import {
  deadLetter,
  effects,
  gate,
  Orders,
  place,
  Plans,
  readiness,
  recordEffect,
  settled,
  startOrders,
  type Order,
  type OrderService,
} from './orders.js';

@Controller()
class Others {
  constructor(
    private readonly dataSource: DataSource,
    private readonly plans: Plans,
  ) {}

  @EventPattern<string>('report.wanted')
  @IdempotentHandler<Order>((order) => order.orderId)
  @ConsumeFrom('reports', { concurrency: 2 })
  async onReport(@Payload() { orderId }: Order): Promise<void> {
    await this.plans.act(orderId);
    await recordEffect(this.dataSource, orderId);
  }

  /** The same pattern as a handler on the service's own queue. */
  @EventPattern<string>('order.placed')
  @IdempotentHandler<Order>((order) => order.orderId, { consumer: 'copier' })
  @ConsumeFrom('copies')
  async onOrder(@Payload() { orderId }: Order): Promise<void> {
    await this.plans.act(`copy of ${orderId}`);
    await recordEffect(this.dataSource, `copy of ${orderId}`);
  }

  @EventPattern<string>('stubborn')
  @IdempotentHandler<Order>((order) => order.orderId)
  @Retry({ delays: [20], attempts: 5 })
  async onStubborn(@Payload() { orderId }: Order): Promise<void> {
    await this.plans.act(orderId);
    await recordEffect(this.dataSource, orderId);
  }

  @EventPattern<string>('once')
  @IdempotentHandler<Order>((order) => order.orderId)
  @Retry({ attempts: 1 })
  async onOnce(@Payload() { orderId }: Order): Promise<void> {
    await this.plans.act(orderId);
  }
}

const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  service = await startOrders(cleanup, {
    controllers: [Orders, Others],
    config: { concurrency: 4, poolSize: 20, retryDelaysMs: [50, 2_000] },
  });
});

beforeEach(() => service.db.query('DELETE FROM effect'));

const publish = (routingKey: string, orderId: string): Promise<void> =>
  service.broker.publish('events', routingKey, { orderId });

it('lets a slow handler on a queue of its own hold up nobody else', async () => {
  const slow = gate();
  const reports = ['R1', 'R2', 'R3', 'R4', 'R5'];
  for (const orderId of reports) {
    service.plans.plan(orderId, () => slow.opened);
    await publish('report.wanted', orderId);
  }
  await eventually(() => expect(service.settlements.unsettled).toBe(2));
  for (let index = 0; index < 20; index++) await place(service.broker, { orderId: `F${index}` });
  await eventually(async () => expect(await effects(service.db)).toHaveLength(40));
  await eventually(() => expect(service.settlements.unsettled).toBe(2));
  // As many as its concurrency says, and the rest waits at the broker.
  await holds(() => expect(service.settlements.unsettled).toBe(2), 200);
  expect(await service.broker.depth('commissions.reports')).toEqual({ ready: 3, consumers: 1 });
  slow.open();
  await settled(service);
  await eventually(async () => expect(await effects(service.db)).toHaveLength(45));
});

it('brings a message of which two queues want a copy to both, and each once', async () => {
  await place(service.broker, { orderId: 'B' });
  await place(service.broker, { orderId: 'B' });
  await eventually(async () => expect(await effects(service.db)).toEqual(['B', 'copy of B']));
  await settled(service);
});

it('gives up for one queue what the handler on another has done', async () => {
  const { broker, db, plans, settlements } = service;
  plans.plan('copy of G', () => Promise.reject(new PermanentError('no copies')));
  const { delivered } = settlements;
  await place(broker, { orderId: 'G' });
  await eventually(() => expect(settlements.delivered).toBe(delivered + 2));
  await settled(service);
  expect(await effects(db)).toEqual(['G']);
  const letters = await broker.drainQueue('commissions.dead');
  expect(letters.map(({ headers }) => headers)).toMatchObject([
    { 'x-original-queue': 'commissions.copies', 'x-consumer': 'copier' },
  ]);
});

it('brings a failed message of a queue back to that queue alone', async () => {
  service.plans.plan('R', (run) => {
    if (run === 1) throw new Error('fails once');
  });
  await publish('report.wanted', 'R');
  await eventually(async () => expect(await effects(service.db)).toEqual(['R']));
  await settled(service);
});

it('tries as often as @Retry says, after the delays that it says', async () => {
  service.plans.plan('S', (run) => {
    if (run < 5) throw new Error('fails four times');
  });
  await publish('stubborn', 'S');
  // Four times 20 ms: the service's own second delay is two seconds.
  await eventually(async () => expect(await effects(service.db)).toEqual(['S']), {
    timeoutMs: 1_900,
  });
  service.plans.plan('T', () => Promise.reject(new Error('fails')));
  await publish('stubborn', 'T');
  expect((await deadLetter(service.broker)).headers).toMatchObject({
    'x-attempt': 5,
    'x-dead-reason': 'attempts-exhausted',
    'x-consumer': 'commissions/stubborn',
  });
  expect(service.plans.runs('T')).toBe(5);
});

it('does not try again what @Retry says to try once', async () => {
  service.plans.plan('O', () => Promise.reject(new Error('fails')));
  await publish('once', 'O');
  expect((await deadLetter(service.broker)).headers).toMatchObject({ 'x-attempt': 1 });
  expect(service.plans.runs('O')).toBe(1);
});

it('waits at least as long as RetryLaterError asks for, and counts the attempt', async () => {
  service.plans.plan('L', (run) => {
    if (run === 1) throw new RetryLaterError(60, 'not before');
  });
  await publish('stubborn', 'L');
  await eventually(async () =>
    expect((await service.broker.depth('commissions.retry.2000')).ready).toBe(1),
  );
  expect(service.plans.runs('L')).toBe(1);
  await eventually(async () => expect(await effects(service.db)).toEqual(['L']));
  await settled(service);
});

it('takes the messages along that a handler has left behind, and the binding away', async () => {
  const { broker, db, settlements } = service;
  await broker.withChannel((channel) =>
    channel.bindQueue('commissions', 'events', 'report.wanted'),
  );
  const before = settlements.delivered;
  // In the queue that it has left: published before it moved, or back from a delay queue.
  await broker.sendToQueue('commissions', { orderId: 'M1' }, { type: 'report.wanted' });
  await eventually(async () => expect(await effects(db)).toEqual(['M1']));
  await settled(service);
  // Once from each queue.
  expect(settlements.delivered).toBe(before + 2);

  await broker.closeAllConnections();
  await eventually(() => expect(service.app.log()).toContain('closed by a test'));
  await eventually(async () => expect(await readiness(service.app)).toMatchObject({ status: 200 }));
  await settled(service);
  const { delivered } = settlements;
  await publish('report.wanted', 'M2');
  await eventually(async () => expect(await effects(db)).toEqual(['M1', 'M2']));
  await settled(service);
  expect(settlements.delivered).toBe(delivered + 1);
  expect((await broker.depth('commissions.dead')).ready).toBe(0);
});
