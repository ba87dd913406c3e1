import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, Payload, type RmqContext } from '@nestjs/microservices';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { eventually, useCleanup } from '../support/index.js';
import { Gate, Orders, startFixture, type Fixture, type Order } from './orders.fixture.js';

@Controller()
class Isolated {
  constructor(private readonly orders: Orders) {}

  @EventPattern<string>('order.repeatable')
  @IdempotentHandler<Order>((order) => order.id, { isolation: 'REPEATABLE READ' })
  repeatable(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }

  @EventPattern<string>('order.serializable')
  @IdempotentHandler<Order>((order) => order.id, { isolation: 'SERIALIZABLE' })
  serializable(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }
}

const cleanup = useCleanup();
let world: Fixture;
let other: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, {
    controllers: [Isolated],
    tables: `
      CREATE TABLE balance (id text PRIMARY KEY, cents int NOT NULL);
      INSERT INTO balance VALUES ('a', 0), ('b', 0);
      CREATE FUNCTION raise(state text) RETURNS void LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'raised' USING ERRCODE = state; END $$;`,
  });
  other = await startFixture(cleanup, { sharing: world.db, controllers: [Isolated] });
});

async function processed(...ids: string[]): Promise<void> {
  await eventually(async () => expect(await world.keys()).toEqual(expect.arrayContaining(ids)));
}

it.each([
  ['order.placed', 'read committed'],
  ['order.repeatable', 'repeatable read'],
  ['order.serializable', 'serializable'],
])('runs %s under %s, whatever the server has for default', async (pattern, level) => {
  await world.db.query(
    `ALTER DATABASE "${world.db.name}" SET default_transaction_isolation = 'repeatable read'`,
  );
  await world.db.terminateBackends();
  let seen: unknown;
  world.orders.on(level, async (_, { dataSource }) => {
    [seen] = await dataSource.query<unknown[]>('SHOW transaction_isolation');
  });
  await world.publish({ id: level }, pattern);
  await processed(level);
  expect(seen).toEqual({ transaction_isolation: level });
  await world.db.query(`ALTER DATABASE "${world.db.name}" RESET default_transaction_isolation`);
});

it.each(['40001', '40P01'])(
  'runs again at once after %s, with nothing left of before',
  async (state) => {
    world.orders.on(state, async (_, { effects, dataSource }, __, run) => {
      await effects.insert({ id: `${state}-${run}`, note: '' });
      if (run < 4) await dataSource.query('SELECT raise($1)', [state]);
    });
    await world.quiet();
    const { acked } = world.settlements;
    await world.publish({ id: state });
    await processed(state);
    await eventually(() => expect(world.settlements.acked).toBe(acked + 1));
    expect((await world.effects()).filter((id) => id.startsWith(state))).toEqual([`${state}-4`]);
  },
);

it('runs again when the handler wraps or swallows the serialization failure', async () => {
  world.orders.on('wrapped', async (_, { dataSource }, __, run) => {
    const failing = dataSource.query(`SELECT raise('40001')`);
    if (run === 1) await failing.catch(() => undefined);
    else if (run === 2)
      await failing.catch((cause: unknown) => {
        throw new Error('could not post', { cause });
      });
    else await failing.catch(() => dataSource.query('ROLLBACK TO SAVEPOINT none')).catch(() => 0);
  });
  await world.publish({ id: 'wrapped' });
  await eventually(() => expect(world.orders.runs('wrapped')).toBeGreaterThan(4));
  world.orders.on('wrapped', () => undefined);
  await processed('wrapped');
});

it('becomes an ordinary failure when it fails so every time', async () => {
  world.orders.on('always', (_, { dataSource }) => dataSource.query(`SELECT raise('40001')`));
  await world.publish({ id: 'always' });
  const dead = await world.deadLetter();
  expect(dead.reason).toBe('attempts-exhausted');
  expect(world.orders.runs('always')).toBe(16);
  expect(await world.keys()).not.toContain('always');
});

it('ends a deadlock of two handlers with both effects, and no attempt counted', async () => {
  const bothHold = new Gate();
  let holding = 0;
  const lockBoth = (first: string, second: string) => {
    world.orders.on(`locks ${first}`, async (order, { dataSource, effects }, context) => {
      const headers = context.getMessage().properties.headers;
      await effects.insert({ id: order.id, note: String(headers?.['x-attempt'] ?? 0) });
      const add = 'UPDATE balance SET cents = cents + 1 WHERE id = $1';
      await dataSource.query(add, [first]);
      holding += 1;
      if (holding === 2) bothHold.open();
      await bothHold.opened;
      await dataSource.query(add, [second]);
    });
  };
  lockBoth('a', 'b');
  lockBoth('b', 'a');
  await Promise.all([world.publish({ id: 'locks a' }), world.publish({ id: 'locks b' })]);
  await processed('locks a', 'locks b');
  expect(holding).toBeGreaterThan(2);
  expect(await world.db.query('SELECT id, cents FROM balance ORDER BY id')).toEqual([
    { id: 'a', cents: 2 },
    { id: 'b', cents: 2 },
  ]);
  expect(await world.db.query(`SELECT note FROM effect WHERE id LIKE 'locks%'`)).toEqual([
    { note: '0' },
    { note: '0' },
  ]);
});

it.each(['order.repeatable', 'order.serializable'])(
  'takes a copy in another process for a duplicate also under %s',
  async (pattern) => {
    const gate = new Gate();
    other.orders.on(pattern, async (_, { effects }) => {
      await effects.insert({ id: pattern, note: 'other' });
      await gate.opened;
    });
    await other.publish({ id: pattern }, pattern);
    await eventually(() => expect(other.orders.runs(pattern)).toBe(1));
    await world.quiet();
    const { acked } = world.settlements;
    await world.publish({ id: pattern }, pattern);
    await eventually(async () =>
      expect((await world.db.activity()).some(({ blockedBy }) => blockedBy.length > 0)).toBe(true),
    );
    gate.open();
    await eventually(() => expect(world.settlements.acked).toBe(acked + 1));
    expect(world.orders.runs(pattern)).toBe(0);
    expect(await world.effects()).toContain(pattern);
  },
);
