import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, Payload, type RmqContext } from '@nestjs/microservices';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { Orders, startFixture, type Fixture, type Order } from '../idempotency/orders.fixture.js';
import { readiness } from '../messaging/orders.js';
import { eventually, holds, useCleanup } from '../support/index.js';

/** The same handlers, with little time. */
@Controller()
class Hurried {
  constructor(private readonly orders: Orders) {}

  @EventPattern<string>('order.hurried')
  @IdempotentHandler<Order>((order) => order.id, { timeout: '300ms' })
  onOrder(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }
}

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, { controllers: [Hurried] });
});

/** A pool that has connections: opening one in a silent network is another failure. */
beforeEach(async () => {
  const id = `warm ${expect.getState().currentTestName}`;
  await world.publish({ id });
  await processed(id);
  await world.quiet();
});

const hurry = (id: string): Promise<void> => world.publish({ id }, 'order.hurried');

async function processed(id: string): Promise<void> {
  await eventually(async () => expect(await world.keys()).toContain(id), { timeoutMs: 20_000 });
}

async function effectsOf(id: string): Promise<string[]> {
  return (await world.effects()).filter((one) => one.startsWith(`${id}-`));
}

const attemptOf = (context: RmqContext): unknown =>
  context.getMessage().properties.headers?.['x-attempt'];

/** The message waits in its queue, nobody takes it, and the service says why. */
async function handedBack(timeoutMs = 10_000): Promise<void> {
  await eventually(
    async () => expect(await world.broker.depth('commissions')).toEqual({ ready: 1, consumers: 0 }),
    { timeoutMs },
  );
  expect(await readiness(world.app)).toMatchObject({
    status: 503,
    body: expect.stringContaining('paused during an outage') as string,
  });
  await holds(
    async () => expect((await world.broker.depth('commissions.dead')).ready).toBe(0),
    200,
  );
}

it('counts nothing against a message whose claim is not answered', async () => {
  let attempt: unknown = 'none';
  world.orders.on('claim', (_, { effects }, context, run) => {
    attempt = attemptOf(context);
    return effects.insert({ id: `claim-${run}`, note: '' });
  });
  world.databaseProxy.stall();
  await hurry('claim');
  await handedBack().finally(() => world.databaseProxy.resume());
  await processed('claim');
  await world.quiet();
  expect(await effectsOf('claim')).toEqual(['claim-1']);
  expect(attempt).toBeUndefined();
  expect(world.app.log()).toContain('PostgreSQL neither answers a statement');
});

it.each(['toServer', 'toClient'] as const)(
  'counts nothing against a message whose statement is not answered, silent %s',
  async (direction) => {
    const id = `statement ${direction}`;
    const attempts: unknown[] = [];
    world.orders.on(id, async (_, { effects, dataSource }, context, run) => {
      attempts.push(attemptOf(context));
      await effects.insert({ id: `${id}-${run}`, note: '' });
      if (run > 1) return;
      world.databaseProxy.stall(direction);
      await dataSource.query('SELECT 1').catch(() => undefined);
    });
    await hurry(id);
    await handedBack().finally(() => world.databaseProxy.resume());
    await processed(id);
    await world.quiet();
    expect(await effectsOf(id)).toEqual([`${id}-2`]);
    expect(attempts).toEqual([undefined, undefined]);
  },
);

it('leaves it to the redelivery what became of a COMMIT that is not answered', async () => {
  const attempts: unknown[] = [];
  world.orders.on('commit', (_, { effects }, context, run) => {
    attempts.push(attemptOf(context));
    return effects.insert({ id: `commit-${run}`, note: '' });
  });
  const stop = world.databaseProxy.intercept((chunk, direction) => {
    if (direction === 'toServer' && chunk.includes('COMMIT\0')) {
      stop();
      world.databaseProxy.stall('toClient');
    }
    return 'forward';
  });
  await hurry('commit');
  await handedBack(45_000).finally(() => world.databaseProxy.resume());
  await world.quiet();
  expect(await effectsOf('commit')).toEqual(['commit-1']);
  expect(attempts).toEqual([undefined]);
}, 75_000);

it.each<[string, (orders: Orders) => Promise<unknown>]>([
  ['waits for something else', () => new Promise(() => undefined)],
  ['runs a slow statement', ({ dataSource }) => dataSource.query('SELECT pg_sleep(20)')],
])('counts an attempt when a handler %s', async (what, wait) => {
  const id = `slow ${what}`;
  const attempts: unknown[] = [];
  const { nacked } = world.settlements;
  world.orders.on(id, async (_, tools, context, run) => {
    attempts.push(attemptOf(context));
    await tools.effects.insert({ id: `${id}-${run}`, note: '' });
    if (run === 1) await wait(tools);
  });
  await hurry(id);
  await processed(id);
  expect(await effectsOf(id)).toEqual([`${id}-2`]);
  expect(attempts).toEqual([undefined, 1]);
  expect(world.settlements.nacked).toBe(nacked);
});

it('takes a key that somebody holds for busy, not for silence', async () => {
  const holder = await world.db.pool.connect();
  try {
    await holder.query('BEGIN');
    await holder.query(
      `INSERT INTO processed_message (consumer, key, expires_at)
       VALUES ('commissions/order.hurried', 'held', now())`,
    );
    await hurry('held');
    // Sooner than the timeout for locks of a handler that has more time.
    await eventually(() => expect(world.app.log()).toContain('KeyBusyError'), { timeoutMs: 3_000 });
    await holder.query('ROLLBACK');
  } finally {
    holder.release();
  }
  await processed('held');
  await world.quiet();
  expect(await world.effects()).toContain('held');
  expect(world.orders.runs('held')).toBe(1);
});

it('gives a slow statement the whole time that PostgreSQL has for it', async () => {
  // The handler's own time is over first: its statement begins when half of that is gone.
  const attempts: unknown[] = [];
  world.orders.on('half', async (_, { effects, dataSource }, context, run) => {
    attempts.push(attemptOf(context));
    if (run === 1) {
      await dataSource.query('SELECT pg_sleep(0.2)');
      await dataSource.query('SELECT pg_sleep(20)');
    }
    await effects.insert({ id: `half-${run}`, note: '' });
  });
  await hurry('half');
  await processed('half');
  expect(attempts).toEqual([undefined, 1]);
});
