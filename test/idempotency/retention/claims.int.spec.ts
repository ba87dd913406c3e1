import { createTestDatabase, useCleanup, type TestDatabase } from '../../support/index.js';
import { integer, seeded } from '../../support/random.js';
import {
  CONSUMER,
  countKeys,
  logDeletions,
  openReplica,
  seedKeys,
  seenAgo,
  type Replica,
} from './replica.js';

const cleanup = useCleanup();
let db: TestDatabase;

beforeEach(async () => {
  db = cleanup.use(await createTestDatabase());
  await db.query('CREATE TABLE effect (key text NOT NULL)');
  await seenAgo(db, '0');
});

/** Processes a message with this key, whose effect is a row. */
const process = ({ processor, handler, dataSource }: Replica, id: string): Promise<unknown> =>
  processor.process({ ...handler, fingerprint: false }, { id }, () =>
    dataSource.query('INSERT INTO effect VALUES ($1)', [id]),
  );

it('has one effect for a retention when expiry deletes a key that is being claimed', async () => {
  const claimer = await openReplica(cleanup, db);
  const other = await openReplica(cleanup, db);
  const purger = await openReplica(cleanup, db, { purge: { batchRows: 20 } });
  const count = 200;
  let again = 0;
  for (let round = 0; round < 5; round++) {
    await db.query('TRUNCATE processed_message, effect');
    await seedKeys(db, { count, expired: '1 hour' });
    const ids = Array.from({ length: count }, (_, n) => `K${n + 1}`).toReversed();
    await Promise.all([
      purger.purge.run(),
      // Each key is claimed twice at once, by two processes.
      ...[claimer, other].map(async (replica) => {
        for (const id of ids) await process(replica, id);
      }),
    ]);
    await purger.purge.run();
    const [row] = await db.query<{ effects: number; keys: number; kept: number; wrong: number }>(
      `SELECT count(effects)::int AS effects, count(kept)::int AS kept,
              count(*) FILTER (WHERE effects > 1 OR effects IS NOT NULL <> (kept IS NOT NULL))::int AS wrong
         FROM (SELECT key, count(*) AS effects FROM effect GROUP BY key) e
         FULL JOIN (SELECT key, expires_at AS kept FROM processed_message) k USING (key)`,
    );
    // A claim before its deletion was a duplicate, one after it took the key as new, with its effect.
    expect(row).toMatchObject({ wrong: 0, effects: row!.kept });
    again += row!.effects;
  }
  expect(again).toBeGreaterThan(0);
  expect(again).toBeLessThan(5 * count);
});

it('lets a claim wait for the end of the batch that deletes its key, and then take it', async () => {
  const replica = await openReplica(cleanup, db);
  await seedKeys(db, { expired: '1 hour' });
  const batch = await db.pool.connect();
  try {
    await batch.query(`BEGIN; DELETE FROM processed_message WHERE key = 'K1'`);
    const claimed = process(replica, 'K1');
    expect(await Promise.race([claimed, waits()])).toBe('waits');
    await batch.query('COMMIT');
    await claimed;
  } finally {
    batch.release(true);
  }
  expect(await db.query('SELECT key FROM effect')).toEqual([{ key: 'K1' }]);
  expect(await countKeys(db, 'expires_at > now()')).toBe(1);
});

async function waits(): Promise<'waits'> {
  for (;;) {
    if ((await db.activity()).some(({ blockedBy }) => blockedBy.length > 0)) return 'waits';
  }
}

it('never holds claims up while two hundred thousand keys are deleted', async () => {
  // A trigger makes deleting dearer: all of them in one transaction would take seconds.
  await db.query(logDeletions());
  await seedKeys(db, { count: 200_000, expired: '1 hour' });
  const [purger, claimer] = [await openReplica(cleanup, db), await openReplica(cleanup, db)];
  const at = { work: true };
  const run = purger.purge.run().finally(() => {
    at.work = false;
  });
  const random = seeded(1);
  const latencies: number[] = [];
  for (let n = 0; at.work; n++) {
    const started = performance.now();
    // Expired ones from all over the table, and new ones, in turn.
    await process(claimer, n % 2 === 0 ? `K${integer(random, 1, 200_000)}` : `new ${n}`);
    latencies.push(performance.now() - started);
  }
  expect(await run).toMatchObject({ outcome: 'completed' });
  expect(await countKeys(db, 'expires_at < now()')).toBe(0);
  expect(latencies.length).toBeGreaterThan(100);
  expect(Math.max(...latencies)).toBeLessThan(500);
  expect(await countKeys(db, `consumer = '${CONSUMER}'`)).toBeGreaterThan(50);
}, 60_000);
