import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, Payload, type RmqContext } from '@nestjs/microservices';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { PermanentError } from '../../src/messaging/index.js';
import { eventually, useCleanup } from '../support/index.js';
import { Orders, startFixture, type Fixture, type Order } from './orders.fixture.js';

/** What becomes of an order in each of two departments, which know nothing of each other. */
@Controller()
class Billing {
  constructor(private readonly orders: Orders) {}

  @EventPattern<string>('order.split')
  @IdempotentHandler<Order>((order) => order.id, { consumer: 'billing' })
  bill(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work({ ...order, id: `${order.id} billed` }, context);
  }
}

@Controller()
class Shipping {
  constructor(private readonly orders: Orders) {}

  @EventPattern<string>('order.split')
  @IdempotentHandler<Order>((order) => order.id, { consumer: 'shipping' })
  ship(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work({ ...order, id: `${order.id} shipped` }, context);
  }
}

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, { controllers: [Billing, Shipping] });
});

const consumersOf = async (key: string): Promise<unknown[]> =>
  (
    await world.db.query(
      'SELECT consumer FROM processed_message WHERE key = $1 ORDER BY consumer',
      [key],
    )
  ).map(({ consumer }) => consumer as string);

const effectsOf = async (id: string): Promise<string[]> =>
  (await world.effects()).filter((one) => one.startsWith(id));

it('runs both under their own consumers, and settles the message once', async () => {
  await world.quiet();
  const acked = world.settlements.acked;
  await world.publish({ id: 'both' }, 'order.split');
  await eventually(() => expect(world.settlements.acked).toBe(acked + 1));
  await world.quiet();
  expect(world.settlements.acked).toBe(acked + 1);
  expect(await consumersOf('both')).toEqual(['billing', 'shipping']);
  expect(await effectsOf('both')).toEqual(['both billed', 'both shipped']);
});

it.each([
  ['billed', 'shipped'],
  ['shipped', 'billed'],
])('keeps the effect of one and retries only the one that fails: %s', async (bad, good) => {
  const id = `retry ${bad}`;
  world.orders.on(`${id} ${bad}`, async (order, { effects }, __, run) => {
    await effects.insert({ id: `${order.id}-${run}`, note: '' });
    if (run < 3) throw new Error('fails after its effect');
  });
  await world.quiet();
  const acked = world.settlements.acked;
  await world.publish({ id }, 'order.split');
  await eventually(async () => expect(await consumersOf(id)).toHaveLength(2));
  await eventually(() => expect(world.settlements.acked).toBe(acked + 3));
  expect(world.orders.runs(`${id} ${good}`)).toBe(1);
  expect(world.orders.runs(`${id} ${bad}`)).toBe(3);
  expect(await effectsOf(id)).toEqual([`${id} ${bad}-3`, `${id} ${good}`].sort());
});

it('dead-letters the message when one fails for good, with the effect of the other', async () => {
  let repaired = false;
  world.orders.on('dead shipped', async (_, { effects }) => {
    if (!repaired) throw new PermanentError('no such address');
    await effects.insert({ id: 'dead shipped', note: '' });
  });
  await world.publish({ id: 'dead' }, 'order.split');
  const dead = await world.deadLetter();
  expect(dead).toMatchObject({
    reason: 'permanent-error',
    error: 'PermanentError: no such address',
  });
  expect(await consumersOf('dead')).toEqual(['billing']);
  // Brought back, it runs the one that failed and not the other.
  repaired = true;
  await world.broker.publish('events', 'order.split', dead.body);
  await eventually(async () => expect(await consumersOf('dead')).toEqual(['billing', 'shipping']));
  expect(await effectsOf('dead')).toEqual(['dead billed', 'dead shipped']);
  expect(world.orders.runs('dead billed')).toBe(1);
});

it('retries as long as one of two failures may pass', async () => {
  world.orders.on('mixed billed', () => {
    throw new PermanentError('never');
  });
  world.orders.on('mixed shipped', async (_, { effects }, __, run) => {
    await effects.insert({ id: `mixed shipped-${run}`, note: '' });
    if (run === 1) throw new Error('not yet');
  });
  await world.publish({ id: 'mixed' }, 'order.split');
  expect((await world.deadLetter()).reason).toBe('permanent-error');
  expect(await consumersOf('mixed')).toEqual(['shipping']);
  expect(await effectsOf('mixed')).toEqual(['mixed shipped-2']);
});
