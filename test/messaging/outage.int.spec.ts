import { createHash } from 'node:crypto';
import { DataSource } from 'typeorm';
import { atPoint, cut, eventually, holds, useCleanup } from '../support/index.js';
import { effects, place, readiness, settled, startOrders, type OrderService } from './orders.js';

const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  service = await startOrders(cleanup, { config: { concurrency: 4 } });
});

beforeEach(() => service.db.query('TRUNCATE effect'));

const orders = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `order-${String(index).padStart(2, '0')}`);

async function noneBurned(): Promise<void> {
  expect((await service.broker.depth('commissions.dead')).ready).toBe(0);
  for (const delay of [50, 100, 150])
    expect((await service.broker.depth(`commissions.retry.${delay}`)).ready).toBe(0);
}

it('hands messages back while the database is away, takes no more, and goes on by itself', async () => {
  service.postgres.refuse();
  service.postgres.cut();
  for (const orderId of orders(10)) await place(service.broker, { orderId });
  await eventually(async () =>
    expect(await service.broker.depth('commissions')).toEqual({ ready: 10, consumers: 0 }),
  );
  expect(await readiness(service.app)).toMatchObject({
    status: 503,
    body: expect.stringContaining('paused during an outage') as string,
  });
  // Once for each place in the prefetch window.
  expect(service.settlements.delivered).toBeLessThanOrEqual(4);
  const { delivered } = service.settlements;
  await holds(() => expect(service.settlements.delivered).toBe(delivered), 1_000);

  await service.postgres.accept();
  await eventually(async () => expect(await effects(service.db)).toEqual(orders(10)), {
    timeoutMs: 20_000,
  });
  await settled(service);
  await noneBurned();
  expect(await readiness(service.app)).toMatchObject({ status: 200 });
});

it.each([
  ['after a failover to read-only', '25006'],
  ['out of connections', '53300'],
  ['out of disk', '53100'],
  ['shutting down', '57P01'],
  ['losing connections', '08006'],
])('counts nothing against a message that meets a database %s', async (_, state) => {
  // As many as there are attempts.
  const remaining = 4;
  const orderId = `state-${state}`;
  service.plans.plan(orderId, (run) => (run <= remaining ? raise(state) : undefined));
  await place(service.broker, { orderId });
  await eventually(async () => expect(await effects(service.db)).toEqual([orderId]));
  expect(service.plans.runs(orderId)).toBe(remaining + 1);
  await settled(service);
  await noneBurned();
});

it('burns no message, however often the database fails between answers that it is well', async () => {
  // Full disks and exhausted connections look like this: reading works. The broker gives up after 20.
  service.plans.plan('FLAPPING', (run) => (run <= 22 ? raise('53100') : undefined));
  await place(service.broker, { orderId: 'FLAPPING' });
  await eventually(async () => expect(await effects(service.db)).toEqual(['FLAPPING']), {
    timeoutMs: 25_000,
  });
  await settled(service);
  await noneBurned();
});

it('finds out by the redelivery what became of a COMMIT whose answer was lost', async () => {
  await useFreshConnections();
  const { acked, nacked } = service.settlements;
  const { cuts } = service.postgres;
  service.postgres.intercept(atPoint('committed', cut));
  await place(service.broker, { orderId: 'U' });
  await eventually(() => expect(service.settlements.acked).toBe(acked + 1));
  expect(service.postgres.cuts).toBe(cuts + 1);
  expect(service.settlements.nacked).toBe(nacked + 1);
  expect(service.plans.runs('U')).toBe(1);
  expect(await effects(service.db)).toEqual(['U']);
  await noneBurned();
});

it('runs a message again whose COMMIT never reached the database', async () => {
  await useFreshConnections();
  const { acked } = service.settlements;
  const { cuts } = service.postgres;
  service.postgres.intercept(atPoint('before-commit', cut));
  await place(service.broker, { orderId: 'V' });
  await eventually(() => expect(service.settlements.acked).toBe(acked + 1));
  expect(service.postgres.cuts).toBe(cuts + 1);
  expect(service.plans.runs('V')).toBe(2);
  expect(await effects(service.db)).toEqual(['V']);
  await noneBurned();
});

it('waits for a copy of its key in another process without counting an attempt', async () => {
  const holder = await service.db.pool.connect();
  try {
    await holder.query('BEGIN');
    await holder.query(
      `INSERT INTO processed_message (consumer, key, fingerprint, expires_at)
       VALUES ('commissions/order.placed', 'B', $1, now())`,
      [createHash('sha256').update('other').digest()],
    );
    await place(service.broker, { orderId: 'B' });
    const waited = { timeoutMs: 15_000 };
    await eventually(() => expect(service.app.log()).toContain('KeyBusyError'), waited);
    await holder.query('ROLLBACK');
  } finally {
    holder.release();
  }
  await eventually(async () => expect(await effects(service.db)).toEqual(['B']));
  expect(service.plans.runs('B')).toBe(1);
  await settled(service);
});

it('is alive after its idle connections were killed, and loses nothing', async () => {
  await place(service.broker, { orderId: 'before' });
  await settled(service);
  expect(await service.db.terminateBackends()).toBeGreaterThan(0);
  await place(service.broker, { orderId: 'after' });
  await settled(service);
  expect(await effects(service.db)).toEqual(['after', 'before']);
  await noneBurned();
});

/** A statement is known by the text with which its connection prepared it. */
async function useFreshConnections(): Promise<void> {
  service.postgres.cut();
  await eventually(() => expect(service.postgres.connections).toBe(0));
}

function raise(state: string): Promise<unknown> {
  return service.app.app
    .get(DataSource)
    .query(`DO $$ BEGIN RAISE EXCEPTION 'as planned' USING ERRCODE = '${state}'; END $$`);
}
