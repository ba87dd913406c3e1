import { Controller } from '@nestjs/common';
import {
  ClientProxyFactory,
  EventPattern,
  MessagePattern,
  Payload,
  Transport,
  type ClientProxy,
} from '@nestjs/microservices';
import { firstValueFrom } from 'rxjs';
import { DataSource } from 'typeorm';
import { IdempotentHandler, NaturallyIdempotent } from '../../src/idempotency/index.js';
import { PermanentError } from '../../src/messaging/index.js';
import { eventually, useCleanup } from '../support/index.js';
import {
  deadLetter,
  effects,
  Plans,
  recordEffect,
  settled,
  startOrders,
  type OrderService,
} from './orders.js';

interface Note {
  id: string;
}

@Controller()
class Notes {
  constructor(
    private readonly dataSource: DataSource,
    private readonly plans: Plans,
  ) {}

  @EventPattern<string>('order.placed')
  @IdempotentHandler<Note>('id')
  async exact(@Payload() { id }: Note): Promise<void> {
    await recordEffect(this.dataSource, `exact ${id}`);
    await this.plans.act(`exact ${id}`);
  }

  @EventPattern<string>('order.*')
  @IdempotentHandler<Note>('id')
  async star(@Payload() { id }: Note): Promise<void> {
    await recordEffect(this.dataSource, `star ${id}`);
    await this.plans.act(`star ${id}`);
  }

  @EventPattern<string>('order.#.done')
  @IdempotentHandler<Note>('id')
  async middle(@Payload() { id }: Note): Promise<void> {
    await recordEffect(this.dataSource, `middle ${id}`);
  }

  @EventPattern<string>('stock.#')
  @IdempotentHandler<Note>('id')
  async end(@Payload() { id }: Note): Promise<void> {
    await recordEffect(this.dataSource, `end ${id}`);
    await this.plans.act(`end ${id}`);
  }

  @MessagePattern<object>({ cmd: 'count' })
  @IdempotentHandler<Note>('id')
  async count(@Payload() { id }: Note): Promise<{ runs: number }> {
    await recordEffect(this.dataSource, `count ${id}`);
    await this.plans.act(`count ${id}`);
    return { runs: this.plans.runs(`count ${id}`) };
  }

  @MessagePattern<string>('stock.check')
  @IdempotentHandler<Note>('id')
  async check(@Payload() { id }: Note): Promise<string> {
    await recordEffect(this.dataSource, `check ${id}`);
    return 'checked';
  }
}

@Controller()
class Unanswerable {
  @MessagePattern<string>('unanswerable')
  @NaturallyIdempotent('does nothing')
  answer(): object {
    return { total: 1n };
  }
}

const cleanup = useCleanup();
let service: OrderService;
let client: ClientProxy;

beforeAll(async () => {
  service = await startOrders(cleanup, { controllers: [Notes, Unanswerable] });
  client = ClientProxyFactory.create({
    transport: Transport.RMQ,
    options: {
      urls: [service.broker.url],
      queue: 'commissions',
      noAssert: true,
      persistent: true,
    },
  });
  await client.connect();
  cleanup.defer(() => client.close());
});

beforeEach(() => service.db.query('DELETE FROM effect'));

async function expectEffects(expected: string[]): Promise<void> {
  await eventually(async () => expect(await effects(service.db)).toEqual(expected));
  await settled(service);
}

it('takes what Nest’s client emits, also as a pattern object’s command', async () => {
  await firstValueFrom(client.emit('order.placed', { id: 'E1' }), { defaultValue: null });
  await firstValueFrom(client.emit({ cmd: 'count' }, { id: 'E2' }), { defaultValue: null });
  await expectEffects(['count E2', 'exact E1', 'star E1']);
});

it('answers what Nest’s client sends, and a repeat with the first answer', async () => {
  const ask = () => firstValueFrom(client.send<unknown>({ cmd: 'count' }, { id: 'Q' }));
  expect(await ask()).toEqual({ runs: 1 });
  expect(await ask()).toEqual({ runs: 1 });
  await expectEffects(['count Q']);
});

it('answers a request that fails with its error, once, and does not try it again', async () => {
  service.plans.plan('count B', () => {
    throw new Error('secret of the house');
  });
  const asked = firstValueFrom(client.send<unknown>({ cmd: 'count' }, { id: 'B' }));
  await expect(asked).rejects.toEqual({ status: 'error', message: 'Internal server error' });
  const refused = firstValueFrom(client.send<unknown>({ cmd: 'count' }, { id: '' }));
  await expect(refused).rejects.toMatchObject({
    message: expect.stringContaining('no business key') as string,
  });
  expect(service.plans.runs('count B')).toBe(1);
  await expectEffects([]);
});

it('answers with an error when its answer is no JSON, and does not try again', async () => {
  const { acked } = service.settlements;
  const asked = firstValueFrom(client.send<unknown>('unanswerable', {}));
  await expect(asked).rejects.toMatchObject({ status: 'error' });
  await settled(service);
  expect(service.settlements.acked).toBe(acked + 1);
});

it('takes a structured CloudEvent, by its routing key or else by its type', async () => {
  const event = (id: string, type: string) => ({
    specversion: '1.0',
    id: `event-${id}`,
    source: '/shop',
    type,
    datacontenttype: 'application/json',
    data: { id },
  });
  const options = { contentType: 'application/cloudevents+json' };
  const { broker } = service;
  await broker.publish('events', 'order.placed', event('C1', 'com.shop.order'), options);
  await broker.sendToQueue('commissions', event('C2', 'order.placed'), options);
  await expectEffects(['exact C1', 'exact C2', 'star C1', 'star C2']);
});

it('takes bare JSON by its routing key, by its type where that says nothing', async () => {
  await service.broker.publish('events', 'order.placed', { id: 'J1' });
  await service.broker.sendToQueue('commissions', { id: 'J2' }, { type: 'order.placed' });
  await expectEffects(['exact J1', 'exact J2', 'star J1', 'star J2']);
});

it('keeps the routing key when the message comes back', async () => {
  service.plans.plan('end K', (run) => {
    if (run < 3) throw new Error('fails');
  });
  await service.broker.publish('events', 'stock.moved.out', { id: 'K' });
  await expectEffects(['end K']);
});

it.each([
  ['order.x', ['star W-order.x']],
  ['order.done', ['middle W-order.done', 'star W-order.done']],
  ['order.a.b.done', ['middle W-order.a.b.done']],
  ['stock', ['end W-stock']],
  ['stock.a.b', ['end W-stock.a.b']],
])('matches wildcards as the broker does: %s', async (routingKey, expected) => {
  await service.broker.publish('events', routingKey, { id: `W-${routingKey}` });
  await expectEffects(expected);
});

it('matches no more than the broker does', async () => {
  for (const key of ['order', 'orders.x', 'order.a.b', 'order.a.done.b']) {
    await expect(service.broker.publish('events', key, { id: key })).rejects.toThrow('No queue');
    await service.broker.sendToQueue('commissions', { id: key }, { type: key });
    expect((await deadLetter(service.broker)).headers).toMatchObject({
      'x-dead-reason': 'no-handler',
    });
  }
  await expectEffects([]);
});

it('runs every event handler that matches, and again only the one that failed', async () => {
  service.plans.plan('star H', (run) => {
    if (run < 3) throw new Error('fails');
  });
  await service.broker.publish('events', 'order.placed', { id: 'H' });
  await expectEffects(['exact H', 'star H']);
  expect(service.plans.runs('exact H')).toBe(1);
  expect(service.plans.runs('star H')).toBe(3);
});

it('runs the other handlers also when the first one fails for good', async () => {
  service.plans.plan('exact O', () => {
    throw new PermanentError('never');
  });
  await service.broker.publish('events', 'order.placed', { id: 'O' });
  expect((await deadLetter(service.broker)).headers).toMatchObject({ 'x-attempt': 1 });
  await expectEffects(['star O']);
});

it('settles a message of several handlers once, as dead when one of them can never succeed', async () => {
  service.plans.plan('star Z', () => {
    throw new Error('fails');
  });
  const { acked } = service.settlements;
  await service.broker.publish('events', 'order.placed', { id: 'Z' });
  expect((await deadLetter(service.broker)).headers).toMatchObject({ 'x-attempt': 4 });
  await expectEffects(['exact Z']);
  expect(service.settlements.acked).toBe(acked + 4);
});

it('gives an event to its event handlers also where a request has the same pattern', async () => {
  await service.broker.publish('events', 'stock.check', { id: 'BOTH' });
  await expectEffects(['check BOTH', 'end BOTH']);
});

it('takes a resend for a repeat although nothing marks it: another id, not redelivered', async () => {
  for (const messageId of ['first', 'second']) {
    await service.broker.publish('events', 'stock.in', { id: 'RESENT' }, { messageId });
  }
  await expectEffects(['end RESENT']);
});
