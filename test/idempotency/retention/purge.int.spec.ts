import {
  createTcpProxy,
  createTestDatabase,
  eventually,
  useCleanup,
  type TestDatabase,
} from '../../support/index.js';
import { countKeys, logDeletions, openReplica, seedKeys, seenAgo } from './replica.js';

const cleanup = useCleanup();
let db: TestDatabase;

beforeEach(async () => {
  db = cleanup.use(await createTestDatabase());
  await seenAgo(db, '0');
});

/** The sizes of the batches, by their transactions. */
const batches = async (): Promise<number[]> =>
  (
    await db.query<{ size: number }>(
      'SELECT count(*)::int AS size FROM deletion GROUP BY transaction ORDER BY transaction',
    )
  ).map(({ size }) => size);

it('deletes what has expired and nothing else, in bounded batches', async () => {
  await db.query(logDeletions());
  await seedKeys(db, { count: 25, expired: '1 second' });
  await seedKeys(db, { count: 5, prefix: 'young', expired: '-1 hour' });
  const { purge } = await openReplica(cleanup, db, { purge: { batchRows: 10 } });
  expect(await purge.run()).toEqual({ outcome: 'completed', deleted: 25 });
  expect(await batches()).toEqual([10, 10, 5]);
  expect(await countKeys(db)).toBe(5);
  expect(await countKeys(db, `key LIKE 'young%'`)).toBe(5);
  expect(await purge.run()).toEqual({ outcome: 'completed', deleted: 0 });
});

it('leaves the keys of other services on the same database to them', async () => {
  await seedKeys(db, { consumer: 'other/sale', expired: '1 day' });
  await seenAgo(db, '0', 'other/sale');
  const { purge } = await openReplica(cleanup, db);
  expect(await purge.run()).toEqual({ outcome: 'completed', deleted: 0 });
  const other = await openReplica(cleanup, db, {
    consumers: ['other/sale'],
    serviceName: 'other',
  });
  expect(await other.purge.run()).toEqual({ outcome: 'completed', deleted: 1 });
});

it('deletes statistics after 400 days', async () => {
  await db.query(`
    INSERT INTO consumer_day (day, consumer)
    SELECT (now() AT TIME ZONE 'UTC')::date - age, 'shop/sale' FROM unnest('{0,400,401,5000}'::int[]) age`);
  const { purge } = await openReplica(cleanup, db);
  expect(await purge.run()).toEqual({ outcome: 'completed', deleted: 2 });
  expect(
    await db.query(
      `SELECT (now() AT TIME ZONE 'UTC')::date - day AS age FROM consumer_day ORDER BY age`,
    ),
  ).toEqual([{ age: 0 }, { age: 400 }]);
});

it('deletes each key once when two replicas purge at once, and neither waits', async () => {
  await db.query(logDeletions(0.001));
  await seedKeys(db, { count: 400, expired: '1 hour' });
  const options = { purge: { batchRows: 40 } };
  const replicas = [
    await openReplica(cleanup, db, options),
    await openReplica(cleanup, db, options),
  ];
  let waiting = 0;
  const at = { work: true };
  const watching = (async () => {
    while (at.work) {
      waiting += (await db.activity()).filter(({ blockedBy }) => blockedBy.length > 0).length;
    }
  })();
  const outcomes: string[] = [];
  let left = 400;
  // Both try at the same time, over and over: each meets the other's batches.
  while (left > 0) {
    const results = await Promise.all(replicas.map(({ purge }) => purge.run()));
    outcomes.push(...results.map(({ outcome }) => outcome));
    left -= results.reduce((sum, { deleted }) => sum + deleted, 0);
  }
  at.work = false;
  await watching;
  expect(left).toBe(0);
  expect(outcomes).toContain('elsewhere');
  expect(outcomes).not.toContain('failed');
  expect(waiting).toBe(0);
  expect(
    await db.query('SELECT count(*)::int AS all, count(DISTINCT key)::int AS keys FROM deletion'),
  ).toEqual([{ all: 400, keys: 400 }]);
});

it('is one run when it is asked again while it runs', async () => {
  await db.query(logDeletions(0.005));
  await seedKeys(db, { count: 40, expired: '1 hour' });
  const { purge } = await openReplica(cleanup, db, { purge: { batchRows: 10 } });
  const [one, other] = await Promise.all([purge.run(), purge.run()]);
  expect(one).toEqual({ outcome: 'completed', deleted: 40 });
  expect(other).toBe(one);
  expect(await batches()).toEqual([10, 10, 10, 10]);
});

it('catches up after days, over as many runs as its time allows', async () => {
  await seedKeys(db, { count: 5_000, expired: '12 days' });
  await seedKeys(db, { count: 5_000, prefix: 'L', expired: '1 hour' });
  const hasty = await openReplica(cleanup, db, { purge: { batchRows: 100, budgetMs: 1 } });
  const first = await hasty.purge.run();
  expect(first.outcome).toBe('out_of_time');
  expect(first.deleted).toBeGreaterThan(0);
  expect(first.deleted).toBeLessThan(10_000);
  const { purge } = await openReplica(cleanup, db);
  expect(await purge.run()).toEqual({ outcome: 'completed', deleted: 10_000 - first.deleted });
  expect(await countKeys(db)).toBe(0);
});

it('passes over rows that another session holds, and one with an old snapshot does not hold it up', async () => {
  await seedKeys(db, { count: 100, expired: '1 hour' });
  const holder = await db.pool.connect();
  const reader = await db.pool.connect();
  try {
    await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM processed_message');
    await holder.query('BEGIN');
    await holder.query(`UPDATE processed_message SET reply = '1' WHERE key IN ('K1', 'K50')`);
    const { purge } = await openReplica(cleanup, db, { purge: { batchRows: 30 } });
    expect(await purge.run()).toEqual({ outcome: 'completed', deleted: 98 });
    await holder.query('ROLLBACK');
    expect(await purge.run()).toEqual({ outcome: 'completed', deleted: 2 });
    const seen = await reader.query<{ count: number }>(
      'SELECT count(*)::int FROM processed_message',
    );
    expect(seen.rows).toEqual([{ count: 100 }]);
  } finally {
    for (const client of [holder, reader]) client.release(true);
  }
});

it('gives up on a table that is locked, and the next run goes on', async () => {
  await seedKeys(db, { count: 3, expired: '1 hour' });
  const { purge } = await openReplica(cleanup, db);
  const holder = await db.pool.connect();
  try {
    await holder.query('BEGIN; LOCK TABLE processed_message');
    expect(await purge.run()).toEqual({ outcome: 'failed', deleted: 0 });
  } finally {
    holder.release(true);
  }
  await eventually(async () => expect(await purge.run()).toMatchObject({ deleted: 3 }));
});

it('logs that the database is away, and the next run goes on', async () => {
  await seedKeys(db, { count: 3, expired: '1 hour' });
  const proxy = cleanup.use(await createTcpProxy(db.url));
  const { purge, activity } = await openReplica(cleanup, db, { url: proxy.url });
  proxy.refuse();
  proxy.cut();
  expect(await purge.run()).toEqual({ outcome: 'failed', deleted: 0 });
  await activity.note();
  await proxy.accept();
  expect(await purge.run()).toEqual({ outcome: 'completed', deleted: 3 });
});

it('keeps what its batches have deleted when the connection breaks in one', async () => {
  // A second for a batch: it has to be met while it runs.
  await db.query(logDeletions(0.05));
  await seedKeys(db, { count: 60, expired: '1 hour' });
  const { purge } = await openReplica(cleanup, db, { purge: { batchRows: 20 } });
  const running = purge.run();
  await eventually(async () => expect(await countKeys(db)).toBe(40));
  await eventually(async () =>
    expect(await db.terminateBackends(({ query }) => query.includes('gone'))).toBe(1),
  );
  expect(await running).toEqual({ outcome: 'failed', deleted: 20 });
  expect(await countKeys(db)).toBe(40);
  expect(await purge.run()).toEqual({ outcome: 'completed', deleted: 40 });
});

it('stops after the batch in work', async () => {
  await db.query(logDeletions(0.01));
  await seedKeys(db, { count: 100, expired: '1 hour' });
  const { purge } = await openReplica(cleanup, db, { purge: { batchRows: 20 } });
  const running = purge.run();
  await eventually(async () =>
    expect(
      (await db.activity()).some(
        ({ query, state }) => state === 'active' && query.includes('gone'),
      ),
    ).toBe(true),
  );
  await purge.onModuleDestroy();
  const { outcome, deleted } = await running;
  expect(outcome).toBe('stopped');
  expect(deleted % 20).toBe(0);
  expect(await countKeys(db)).toBe(100 - deleted);
  expect(deleted).toBeLessThan(100);
});

it('purges further tables in turn, in transactions of their own', async () => {
  await db.query('CREATE TABLE note (id int); INSERT INTO note SELECT generate_series(1, 25)');
  await seedKeys(db, { count: 25, expired: '1 hour' });
  const turns: string[] = [];
  const { purge } = await openReplica(cleanup, db, {
    purge: { batchRows: 10 },
    purgeable: [
      {
        name: 'broken',
        purgeBatch: (manager) => manager.query('SELECT 1 / 0'),
      },
      {
        name: 'note',
        purgeBatch: async (manager, limit) => {
          turns.push(`keys ${await countKeys(db)}`);
          const [, deleted] = await manager.query<[unknown, number]>(
            'DELETE FROM note WHERE id IN (SELECT id FROM note LIMIT $1)',
            [limit],
          );
          return deleted;
        },
      },
    ],
  });
  expect(await purge.run()).toEqual({ outcome: 'failed', deleted: 50 });
  expect(turns).toEqual(['keys 15', 'keys 5', 'keys 0']);
  expect(await db.query('SELECT id FROM note')).toEqual([]);
});
