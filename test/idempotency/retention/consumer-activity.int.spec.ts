import { migrate } from '../../../src/database/index.js';
import { createTestDatabase, useCleanup, type TestDatabase } from '../../support/index.js';
import { CONSUMER, countKeys, openReplica, seedKeys, seenAgo, type Replica } from './replica.js';

const cleanup = useCleanup();
let db: TestDatabase;
let replica: Replica;

beforeEach(async () => {
  db = cleanup.use(await createTestDatabase());
  replica = await openReplica(cleanup, db);
});

interface Gap {
  consumer: string;
  days: number;
}

const gaps = (): Promise<Gap[]> =>
  db.query<Gap>(
    `SELECT consumer, round(extract(epoch FROM ended_at - began_at) / 86400)::int AS days
     FROM consumer_gap ORDER BY consumer, began_at`,
  );

/** A gap that is over, in days before now. */
const gap = (began: number, ended: number): Promise<unknown> =>
  db.query(
    `INSERT INTO consumer_gap VALUES ($1, now() - $2 * interval '1 day', now() - $3 * interval '1 day')`,
    [CONSUMER, began, ended],
  );

const isNoted = async (consumer = CONSUMER): Promise<boolean> => {
  const rows = await db.query(
    `SELECT FROM consumer_activity WHERE consumer = $1 AND active_at > now() - interval '1 minute'`,
    [consumer],
  );
  return rows.length === 1;
};

it('begins with the first note ever, and deletes nothing before it', async () => {
  await seedKeys(db, { expired: '1 day' });
  expect(await replica.purge.run()).toEqual({ outcome: 'completed', deleted: 0 });
  await replica.activity.note();
  expect(await gaps()).toEqual([]);
  expect(await replica.purge.run()).toEqual({ outcome: 'completed', deleted: 1 });
});

it('keeps keys for as much longer as the service was stopped', async () => {
  await seenAgo(db, '100 days');
  await seedKeys(db, { prefix: 'before', expired: '101 days' });
  await seedKeys(db, { prefix: 'in the gap', count: 3, expired: '99 days' });
  await seedKeys(db, { prefix: 'now', count: 2, expired: '1 minute' });
  // Also a purge that comes before the first note after the stop.
  expect(await replica.purge.run()).toMatchObject({ deleted: 1 });
  expect(await countKeys(db)).toBe(5);
  await replica.activity.note();
  expect(await gaps()).toEqual([{ consumer: CONSUMER, days: 100 }]);
  expect(await replica.purge.run()).toMatchObject({ deleted: 0 });
  expect(await countKeys(db)).toBe(5);
});

it('deletes them when they have been kept for their retention of consuming', async () => {
  await gap(150, 50);
  await seenAgo(db, '0');
  await seedKeys(db, { prefix: 'kept', expired: '99 days' });
  await seedKeys(db, { prefix: 'over', expired: '101 days' });
  expect(await replica.purge.run()).toMatchObject({ deleted: 1 });
  expect(await countKeys(db, `key = 'kept1'`)).toBe(1);
});

it('adds several gaps up', async () => {
  await gap(80, 70);
  await gap(60, 55);
  await seenAgo(db, '2 days');
  await seedKeys(db, { prefix: 'kept', expired: '16 days' });
  await seedKeys(db, { prefix: 'over', expired: '18 days' });
  expect(await replica.purge.run()).toMatchObject({ deleted: 1 });
  expect(await countKeys(db, `key = 'kept1'`)).toBe(1);
});

it('is recorded once by replicas that start together', async () => {
  await seenAgo(db, '100 days');
  const others = await Promise.all([1, 2, 3].map(() => openReplica(cleanup, db)));
  await Promise.all([replica, ...others].map(({ activity }) => activity.note()));
  expect(await gaps()).toEqual([{ consumer: CONSUMER, days: 100 }]);
  expect(await isNoted()).toBe(true);
});

it('is no gap when a few notes are missing', async () => {
  await seenAgo(db, '4 minutes');
  await replica.activity.note();
  expect(await gaps()).toEqual([]);
  await seenAgo(db, '6 minutes');
  await replica.activity.note();
  expect(await gaps()).toEqual([{ consumer: CONSUMER, days: 0 }]);
});

it('does not count the time in which the service is alive and does not consume', async () => {
  await seenAgo(db, '3 days');
  replica.consuming.clear();
  await replica.activity.note();
  await seedKeys(db, { expired: '2 days' });
  expect(await replica.purge.run()).toMatchObject({ deleted: 0 });
  expect(await isNoted()).toBe(false);
  replica.consuming.add(CONSUMER);
  await replica.activity.note();
  expect(await gaps()).toEqual([{ consumer: CONSUMER, days: 3 }]);
});

it('counts for a consumer as long as one of the replicas consumes', async () => {
  const other = await openReplica(cleanup, db);
  replica.consuming.clear();
  await Promise.all([replica.activity.note(), other.activity.note()]);
  expect(await isNoted()).toBe(true);
});

it('has a clock for each consumer: one whose queue is paused keeps its keys, the others go on', async () => {
  const both = await openReplica(cleanup, db, { consumers: ['paused', 'busy'] });
  for (const consumer of ['paused', 'busy']) {
    await seenAgo(db, '20 days', consumer);
    await seedKeys(db, { consumer, prefix: consumer, expired: '10 days' });
  }
  await db.query(`UPDATE consumer_activity SET active_at = now() WHERE consumer = 'busy'`);
  both.consuming.delete('paused');
  await both.activity.note();
  expect(await both.purge.run()).toMatchObject({ deleted: 1 });
  expect(await countKeys(db, `consumer = 'paused'`)).toBe(1);
  expect(await gaps()).toEqual([]);
});

it('forgets a gap when no key can be from before its end, and not earlier', async () => {
  // By the consumer's clock the first one ended 111 - 20 days ago, the second 109 - 20.
  await gap(121, 111);
  await gap(119, 109);
  await seenAgo(db, '0');
  expect(await replica.purge.run()).toEqual({ outcome: 'completed', deleted: 1 });
  expect(
    await db.query(`SELECT FROM consumer_gap WHERE ended_at < now() - interval '110 days'`),
  ).toEqual([]);
  // With the first one gone, the clock is ten days further.
  expect(await replica.purge.run()).toEqual({ outcome: 'completed', deleted: 1 });
  expect(await gaps()).toEqual([]);
});

it('never goes back, nor past the present, with a server whose clock is wrong', async () => {
  await seenAgo(db, '-1 day');
  await seedKeys(db, { expired: '-12 hours' });
  await replica.activity.note();
  expect(await replica.purge.run()).toMatchObject({ deleted: 0 });
  expect(
    await db.query(`SELECT FROM consumer_activity WHERE active_at > now() + interval '23 hours'`),
  ).toHaveLength(1);
});

it('takes the last key for the last sign of life when the tables are made', async () => {
  await seedKeys(db, { expired: '-10 days' });
  await seedKeys(db, { prefix: 'old', expired: '0' });
  await db.query(
    `DROP TABLE consumer_gap, consumer_activity; DROP INDEX processed_message_expires_at_ix`,
  );
  await db.query(`DELETE FROM migrations WHERE name LIKE 'Retention%'`);
  await migrate(replica.dataSource);
  await replica.activity.note();
  expect(await gaps()).toEqual([{ consumer: CONSUMER, days: 80 }]);
});
