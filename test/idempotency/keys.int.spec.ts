import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, Payload, type RmqContext } from '@nestjs/microservices';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { createTestApp, eventually, useCleanup } from '../support/index.js';
import { Effect, Orders, startFixture, type Fixture, type Order } from './orders.fixture.js';

const cleanup = useCleanup();
let world: Fixture;

/** One handler for each way to name a key. */
@Controller()
class Keys {
  constructor(private readonly orders: Orders) {}

  @EventPattern<string>('key.path')
  @IdempotentHandler('order.number', { fingerprint: false })
  path(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }

  @EventPattern<string>('key.list')
  @IdempotentHandler(['tenant', 'number'])
  list(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }

  @EventPattern<string>('key.throws')
  @IdempotentHandler<{ order: Order }>(({ order }) => order.id)
  throws(): void {}

  @EventPattern<string>('key.async')
  @IdempotentHandler((async () => {
    throw new Error('rejects while nobody listens');
  }) as never)
  async(): void {}

  @EventPattern<string>('key.mutates')
  @IdempotentHandler<{ id: string; tags: string[] }>((order) => order.tags.sort().join())
  mutates(): void {}

  @EventPattern<string>('key.proxy')
  @IdempotentHandler<{ tags: string[] }>((order) => order.tags)
  proxy(): void {}

  @EventPattern<string>('key.fields')
  @IdempotentHandler<Order>((order) => order.id, {
    fingerprint: (order) => [order.amount, order.buyer],
  })
  fields(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }
}

beforeAll(async () => {
  world = await startFixture(cleanup, { controllers: [Keys] });
});

async function processed(key: string): Promise<void> {
  await eventually(async () => expect(await world.keys()).toContain(key));
}

/** Publishes the JSON text as it is. */
const publishText = (pattern: string, json: string): Promise<void> =>
  world.broker.publish('events', pattern, json);

it.each([
  ['missing', '{"order":{}}', /missing/],
  ['of a prototype', '{"order":"abc"}', /missing/],
  ['null', '{"order":{"number":null}}', /null/],
  ['empty', '{"order":{"number":""}}', /blank/],
  ['blank', '{"order":{"number":" \\n"}}', /blank/],
  ['true', '{"order":{"number":true}}', /boolean/],
  ['an object', '{"order":{"number":{"id":1}}}', /object/],
  ['an empty list', '{"order":{"number":[]}}', /empty/],
  ['a list with a gap', '{"order":{"number":["a",null]}}', /null/],
  ['a fraction', '{"order":{"number":1.5}}', /safe integer/],
  ['one past 2^53', '{"order":{"number":9007199254740993}}', /safe integer/],
  ['its twin past 2^53', '{"order":{"number":9007199254740992}}', /safe integer/],
  ['beyond all numbers', '{"order":{"number":1e999}}', /safe integer/],
  ['with a NUL', '{"order":{"number":"a\\u0000b"}}', /NUL/],
  ['with half a surrogate pair', '{"order":{"number":"\\ud800"}}', /surrogate/],
  ['of 513 bytes', `{"order":{"number":"${'ä'.repeat(256)}x"}}`, /513 bytes/],
])('dead-letters a key that is %s, the first time', async (_, json, fault) => {
  await publishText('key.path', json);
  const dead = await world.deadLetter();
  expect(dead).toMatchObject({ reason: 'invalid-key', error: expect.stringMatching(fault) });
  expect(dead.headers['x-attempt']).toBe(1);
  expect(dead.body.toString()).toBe(json);
});

it('takes a number and its text for one key, and 512 bytes for a key', async () => {
  const long = 'ä'.repeat(256);
  for (const number of ['41', '"41"', '-0', '0', `"${long}"`, '9007199254740991']) {
    await publishText(
      'key.path',
      `{"id":${JSON.stringify(`number ${number}`)},"order":{"number":${number}}}`,
    );
    await world.quiet();
  }
  expect(await world.keys()).toEqual(expect.arrayContaining(['41', '0', long, '9007199254740991']));
  expect((await world.effects()).filter((id) => /^number "?-?(41|0)"?$/.test(id))).toEqual([
    'number -0',
    'number 41',
  ]);
});

it('keeps composite keys apart whose parts run into each other', async () => {
  await world.publish({ id: 'list-1', tenant: 'a|b', number: 'c' }, 'key.list');
  await world.publish({ id: 'list-2', tenant: 'a', number: 'b|c' }, 'key.list');
  await world.publish({ id: 'list-3', tenant: 'a","b|c', number: '' + 1 }, 'key.list');
  await processed('["a|b","c"]');
  await processed('["a","b|c"]');
  await processed(JSON.stringify(['a","b|c', '1']));
  await world.publish({ id: 'list-4', tenant: 'a' }, 'key.list');
  expect((await world.deadLetter()).reason).toBe('invalid-key');
});

it.each([
  ['throws', 'key.throws', /key function failed.*undefined/],
  ['is async, and rejects', 'key.async', /async/],
  ['would change the payload', 'key.mutates', /only be read/],
])('dead-letters a message whose key function %s', async (_, pattern, fault) => {
  await world.publish({ id: 'any', tags: ['b', 'a'] }, pattern);
  const dead = await world.deadLetter();
  expect(dead).toMatchObject({ reason: 'invalid-key', error: expect.stringMatching(fault) });
  expect(dead.headers['x-attempt']).toBe(1);
});

it('takes a list out of the payload as a composite key', async () => {
  await world.publish({ id: 'any', tags: ['b', 'a'] }, 'key.proxy');
  await processed('["b","a"]');
});

it('dead-letters another payload under a processed key, also when its message is redelivered', async () => {
  await world.publish({ id: 'reuse', amount: 100 });
  await processed('reuse');
  await world.publish({ id: 'reuse', amount: 200 });
  const dead = await world.deadLetter();
  expect(dead).toMatchObject({ reason: 'key-reuse', error: expect.stringMatching(/reuse/) });
  expect(dead.headers['x-attempt']).toBe(1);
  expect(JSON.parse(dead.body.toString())).toEqual({ id: 'reuse', amount: 200 });
  expect(world.orders.runs('reuse')).toBe(1);
});

it('dead-letters another payload that arrives while the first is in work', async () => {
  const amounts: unknown[] = [];
  world.orders.on('race', async (order, { effects }) => {
    amounts.push(order.amount);
    await effects.insert({ id: 'race', note: String(order.amount) });
    await eventually(() => expect(world.settlements.unsettled).toBe(2));
  });
  await Promise.all([
    world.publish({ id: 'race', amount: 1 }),
    world.publish({ id: 'race', amount: 2 }),
  ]);
  const dead = await world.deadLetter();
  expect(dead.reason).toBe('key-reuse');
  expect(amounts).toHaveLength(1);
  expect([1, 2].filter((amount) => amount !== amounts[0])).toEqual([
    (JSON.parse(dead.body.toString()) as Order).amount,
  ]);
});

it('raises no alarm for the order of properties, or for how numbers are written', async () => {
  await publishText('order.placed', '{"id":"same","a":{"x":1,"y":[1,2]},"n":10,"t":"\\u00e9"}');
  await processed('same');
  await world.quiet();
  const acked = world.settlements.acked;
  await publishText('order.placed', '{"t":"é","n":1e1,"a":{"y":[1.0,2],"x":1},"id":"same"}');
  await eventually(() => expect(world.settlements.acked).toBe(acked + 1));
  expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
});

it('compares only the fields that the handler names', async () => {
  const sale = { id: 'fields', amount: 5, buyer: { id: 1 } };
  await world.publish({ ...sale, sentAt: 'now' }, 'key.fields');
  await processed('fields');
  await world.quiet();
  const acked = world.settlements.acked;
  await world.publish({ ...sale, sentAt: 'later', note: 'again' }, 'key.fields');
  await eventually(() => expect(world.settlements.acked).toBe(acked + 1));
  expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
  await world.publish({ ...sale, buyer: { id: 2 } }, 'key.fields');
  expect((await world.deadLetter()).reason).toBe('key-reuse');
});

it('knows its keys when class and method have other names', async () => {
  await world.publish({ id: 'renamed' });
  await processed('renamed');
  await world.app.close();

  @Controller()
  class Q {
    @EventPattern<string>('order.placed')
    @IdempotentHandler<Order>((z) => z.id)
    a(): never {
      throw new Error('a duplicate does not get here');
    }
  }
  cleanup.use(
    await createTestApp({
      databaseUrl: world.databaseProxy.url,
      rabbitmqUrl: world.rabbitProxy.url,
      controllers: [Q],
      entities: [Effect],
    }),
  );
  await world.quiet();
  const acked = world.settlements.acked;
  await world.publish({ id: 'renamed' });
  await eventually(() => expect(world.settlements.acked).toBe(acked + 1));
  await world.quiet();
  expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
});
