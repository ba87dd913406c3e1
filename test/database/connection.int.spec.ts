import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, Payload, type RmqContext } from '@nestjs/microservices';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import {
  Gate,
  Orders,
  startFixture,
  type Fixture,
  type Order,
} from '../idempotency/orders.fixture.js';
import { eventually, useCleanup } from '../support/index.js';

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

const pids = async (): Promise<number[]> => (await world.db.activity()).map(({ pid }) => pid);

const backend = async ({ dataSource }: Orders): Promise<number> => {
  const [row] = await dataSource.query<[{ pid: number }]>('SELECT pg_backend_pid() AS pid');
  return row.pid;
};

async function processed(id: string): Promise<void> {
  await eventually(async () => expect(await world.keys()).toContain(id));
}

it('rolls back a handler that is past its timeout, and closes its connection', async () => {
  const gate = new Gate();
  let first = 0;
  let late: unknown;
  world.orders.on('slow', async (_, tools, __, run) => {
    await tools.effects.insert({ id: `slow-${run}`, note: '' });
    if (run > 1) return;
    first = await backend(tools);
    await gate.opened;
    // The first run is over for everybody but itself.
    late = await tools.effects
      .insert({ id: 'slow-late', note: '' })
      .catch((error: unknown) => error);
  });
  await world.publish({ id: 'slow' }, 'order.hurried');
  await processed('slow');
  gate.open();
  await eventually(() => expect(String(late)).toContain('TransactionEndedError'));
  expect(await world.effects()).toEqual(['slow-2']);
  expect(await pids()).not.toContain(first);
  expect(world.app.log()).toContain('took longer than its timeout of 300 ms');
});

it('ends a statement that runs past the timeout on the server too', async () => {
  world.orders.on('sleeps', async (_, { effects, dataSource }, __, run) => {
    await effects.insert({ id: `sleeps-${run}`, note: '' });
    if (run === 1) await dataSource.query('SELECT pg_sleep(20)');
  });
  await world.publish({ id: 'sleeps' }, 'order.hurried');
  await processed('sleeps');
  expect((await world.db.activity()).filter(({ query }) => query.includes('pg_sleep'))).toEqual([]);
});

it.each(['toClient', 'toServer'] as const)(
  'does not reuse a connection that was cut at ROLLBACK, %s',
  async (direction) => {
    const id = `rollback ${direction}`;
    let first = 0;
    world.orders.on(id, async (_, tools, __, run) => {
      await tools.effects.insert({ id: `${id}-${run}`, note: '' });
      if (run > 1) return;
      first = await backend(tools);
      const stop = world.databaseProxy.intercept((chunk, way) => {
        const isRollback = chunk.includes('ROLLBACK');
        if (way !== direction || !isRollback) return 'forward';
        stop();
        return 'cut';
      });
      throw new Error('fails, and so does its rollback');
    });
    const cuts = world.databaseProxy.cuts;
    await world.publish({ id });
    await processed(id);
    expect(world.databaseProxy.cuts).toBe(cuts + 1);
    expect((await world.effects()).filter((one) => one.startsWith(id))).toEqual([`${id}-2`]);
    expect(await pids()).not.toContain(first);
  },
);

it('does not reuse a connection that takes no writes, as after a failover', async () => {
  let first = 0;
  world.orders.on('read-only', async (_, tools, __, run) => {
    await tools.effects.insert({ id: `read-only-${run}`, note: '' });
    if (run > 1) return;
    first = await backend(tools);
    await tools.dataSource.query(
      `DO $$ BEGIN RAISE EXCEPTION 'as planned' USING ERRCODE = '25006'; END $$`,
    );
  });
  await world.publish({ id: 'read-only' });
  await processed('read-only');
  expect(first).toBeGreaterThan(0);
  expect(await pids()).not.toContain(first);
});

it('survives that its idle connections are killed', async () => {
  await world.publish({ id: 'idle-1' });
  await processed('idle-1');
  const before = await pids();
  expect(await world.db.terminateBackends(({ state }) => state === 'idle')).toBeGreaterThan(0);
  await world.publish({ id: 'idle-2' });
  await processed('idle-2');
  expect(before).not.toContain((await pids())[0]);
  await world.quiet();
});

it.each<[string, (pid: number) => unknown]>([
  ['is killed', (held) => world.db.terminateBackends(({ pid }) => pid === held)],
  ['is lost without a word of the server', () => world.databaseProxy.cut()],
])('hands back a message whose session %s, and does not count an attempt', async (what, end) => {
  const id = `session ${what}`;
  const gate = new Gate();
  let held = 0;
  let headers: unknown;
  world.orders.on(id, async (_, tools, context, run) => {
    await tools.effects.insert({ id: `${id}-${run}`, note: '' });
    headers = context.getMessage().properties.headers;
    if (run > 1) return;
    held = await backend(tools);
    await gate.opened;
    await tools.effects.insert({ id: `${id}-late`, note: '' }).catch(() => undefined);
  });
  await world.publish({ id });
  await eventually(() => expect(held).toBeGreaterThan(0));
  await end(held);
  gate.open();
  await processed(id);
  expect((await world.effects()).filter((one) => one.startsWith(id))).toEqual([`${id}-2`]);
  expect(headers).not.toHaveProperty('x-attempt');
});

it('writes nothing after the server ended a session that idled in its transaction', async () => {
  await world.db.query(
    `ALTER DATABASE "${world.db.name}" SET idle_in_transaction_session_timeout = '200ms'`,
  );
  await world.db.terminateBackends();
  let told: unknown;
  world.orders.on('idles', async (_, tools, __, run) => {
    await tools.effects.insert({ id: `idles-${run}`, note: '' });
    if (run > 1) return;
    const pid = await backend(tools);
    // Waits as for an answer over HTTP.
    await eventually(async () => expect(await pids()).not.toContain(pid));
    told = await tools.effects
      .insert({ id: 'idles-late', note: '' })
      .catch((error: unknown) => error);
  });
  await world.publish({ id: 'idles' });
  await processed('idles');
  await world.db.query(
    `ALTER DATABASE "${world.db.name}" RESET idle_in_transaction_session_timeout`,
  );
  expect(String(told)).toContain('ConnectionLostError');
  expect((await world.effects()).filter((id) => id.startsWith('idles'))).toEqual(['idles-2']);
  await world.quiet();
});

it('retries a message that the protocol cannot carry, and lets others pass', async () => {
  world.orders.on('too-many', (_, { dataSource }) =>
    dataSource.query(
      `SELECT 1 WHERE 1 IN (${Array.from({ length: 70_000 }, (_one, index) => `$${index + 1}`).join(',')})`,
      Array.from({ length: 70_000 }, () => 1),
    ),
  );
  await world.publish({ id: 'too-many' });
  expect((await world.deadLetter()).reason).toBe('attempts-exhausted');
  await world.publish({ id: 'after' });
  await processed('after');
});

it('goes on with the next message when a parameter cannot be sent', async () => {
  world.orders.on('circular', async (_, { effects, dataSource }, __, run) => {
    await effects.insert({ id: `circular-${run}`, note: '' });
    if (run === 1) {
      await Promise.all([
        dataSource.query('SELECT $1::jsonb', [{ amount: 1n }]),
        effects.insert({ id: 'circular-beside', note: '' }),
      ]);
    }
  });
  await world.publish({ id: 'circular' });
  await processed('circular');
  await Promise.all(['next-1', 'next-2', 'next-3'].map((id) => world.publish({ id })));
  await processed('next-3');
  await world.quiet();
  expect(await world.effects()).toEqual(
    expect.arrayContaining(['circular-2', 'next-1', 'next-2', 'next-3']),
  );
  expect(await world.effects()).not.toContain('circular-beside');
});
