import { Controller } from '@nestjs/common';
import { ClientRMQ, Ctx, MessagePattern, Payload, type RmqContext } from '@nestjs/microservices';
import { firstValueFrom, lastValueFrom, of, toArray } from 'rxjs';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { PermanentError } from '../../src/messaging/index.js';
import { eventually, holds, useCleanup } from '../support/index.js';
import { Gate, Orders, startFixture, type Fixture, type Order } from './orders.fixture.js';

@Controller()
class Desk {
  constructor(private readonly orders: Orders) {}

  @MessagePattern<string>('order.quote')
  @IdempotentHandler<Order>((order) => order.id)
  quote(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }
}

const cleanup = useCleanup();
let world: Fixture;
let client: ClientRMQ;

beforeAll(async () => {
  world = await startFixture(cleanup, { controllers: [Desk] });
  client = new ClientRMQ({ urls: [world.broker.url], queue: 'commissions', noAssert: true });
  cleanup.defer(() => client.close());
  await client.connect();
});

/** Everything that the asker is told, as a list. */
const ask = (order: Order): Promise<unknown[]> =>
  lastValueFrom(client.send<unknown>('order.quote', order).pipe(toArray()));

const rowOf = async (key: string): Promise<unknown> =>
  (await world.db.query('SELECT reply FROM processed_message WHERE key = $1', [key]))[0];

it.each([
  ['an object', { price: 12, lines: [{ sku: 'a' }], note: 'ä 😀', nothing: null }],
  ['a list', [1, 'two', null]],
  ['a text', 'done'],
  ['an empty text', ''],
  ['a number', 0],
  ['false', false],
  ['null', null],
  ['a number with a fraction', 0.1],
  ['a date, as its text', new Date(0)],
])('answers a repeated request with the reply that was stored: %s', async (name, reply) => {
  const id = `reply ${name}`;
  world.orders.on(id, async (_, { effects }, __, run) => {
    await effects.insert({ id: `${id} ${run}`, note: '' });
    return reply;
  });
  const first = await ask({ id });
  expect(first).toEqual([JSON.parse(JSON.stringify(reply))]);
  expect(await ask({ id })).toEqual(first);
  expect(await ask({ id })).toEqual(first);
  expect(world.orders.runs(id)).toBe(1);
  expect((await world.effects()).filter((one) => one.startsWith(id))).toEqual([`${id} 1`]);
});

it('answers a handler without a reply, and its repeat, in the same way', async () => {
  world.orders.on('silent', () => undefined);
  expect(await ask({ id: 'silent' })).toEqual([]);
  expect(await ask({ id: 'silent' })).toEqual([]);
  expect(world.orders.runs('silent')).toBe(1);
  expect(await rowOf('silent')).toEqual({ reply: null });
});

it('stores the last value of an observable', async () => {
  world.orders.on('stream', () => of('first', 'last'));
  expect(await ask({ id: 'stream' })).toEqual(['last']);
  expect(await ask({ id: 'stream' })).toEqual(['last']);
  expect(world.orders.runs('stream')).toBe(1);
});

it('answers concurrent copies of a request alike, and runs one', async () => {
  const gate = new Gate();
  world.orders.on('copies', async (_, { effects }, __, run) => {
    await effects.insert({ id: 'copies', note: '' });
    await gate.opened;
    return { run };
  });
  const replies = Promise.all(Array.from({ length: 5 }, () => ask({ id: 'copies' })));
  await eventually(() => expect(world.settlements.unsettled).toBe(5));
  gate.open();
  expect(await replies).toEqual(Array.from({ length: 5 }, () => [{ run: 1 }]));
  expect(world.orders.runs('copies')).toBe(1);
});

it('answers a request that fails with the error, once, and runs the next one again', async () => {
  world.orders.on('fails', async (_, { effects }, __, run) => {
    await effects.insert({ id: `fails-${run}`, note: '' });
    if (run === 1) throw new Error('the secret of the house');
    return 'at last';
  });
  await world.quiet();
  const acked = world.settlements.acked;
  await expect(ask({ id: 'fails' })).rejects.toEqual({
    status: 'error',
    message: 'Internal server error',
  });
  await world.quiet();
  await holds(() => expect(world.orders.runs('fails')).toBe(1), 300);
  expect(world.settlements.acked).toBe(acked + 1);
  expect(await rowOf('fails')).toBeUndefined();
  expect(await world.effects()).not.toContain('fails-1');

  expect(await ask({ id: 'fails' })).toEqual(['at last']);
  expect(await world.effects()).toContain('fails-2');
  expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
});

it('tells the asker what is wrong with the request', async () => {
  world.orders.on('wrong', () => {
    throw new PermanentError('unknown product');
  });
  await expect(ask({ id: 'wrong' })).rejects.toMatchObject({ message: 'unknown product' });
  await expect(ask({ id: '' })).rejects.toMatchObject({ message: /no business key/ });
  await ask({ id: 'reused', amount: 1 });
  await expect(ask({ id: 'reused', amount: 2 })).rejects.toMatchObject({
    message: /different payload/,
  });
});

it('does not store a reply that cannot be sent', async () => {
  world.orders.on('bigint', async (_, { effects }) => {
    await effects.insert({ id: 'bigint', note: '' });
    return { cents: 1n };
  });
  await expect(ask({ id: 'bigint' })).rejects.toMatchObject({ status: 'error' });
  expect(await rowOf('bigint')).toBeUndefined();
  expect(await world.effects()).not.toContain('bigint');
});

it('does not answer with success when the handler swallowed a SQL error', async () => {
  world.orders.on('swallows', async (_, { dataSource }) => {
    await dataSource.query('SELECT 1 / 0').catch(() => undefined);
    return 'fine';
  });
  await expect(ask({ id: 'swallows' })).rejects.toMatchObject({ status: 'error' });
  expect(await rowOf('swallows')).toBeUndefined();
});

it('hands a request back during an outage, and answers it afterwards', async () => {
  world.orders.on('outage', async (_, { effects }, __, run) => {
    await effects.insert({ id: 'outage', note: '' });
    if (run === 1) {
      world.databaseProxy.refuse();
      world.databaseProxy.cut();
    }
    return { run };
  });
  const reply = firstValueFrom(client.send('order.quote', { id: 'outage' }));
  await eventually(() => expect(world.settlements.nacked).toBe(1));
  await world.databaseProxy.accept();
  expect(await reply).toEqual({ run: 2 });
  expect(await world.effects()).toContain('outage');
});
