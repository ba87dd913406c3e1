import { eventually, useCleanup } from '../support/index.js';
import { startFixture, type Fixture } from './orders.fixture.js';

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup);
});

async function processed(id: string): Promise<void> {
  await eventually(async () => expect(await world.keys()).toContain(id));
}

it('commits the effect of the run that succeeds and nothing of those that fail', async () => {
  world.orders.on('A', async (_, { effects }, __, run) => {
    await effects.insert({ id: `A-${run}`, note: '' });
    if (run <= 2) throw new Error('fails after its effect');
  });
  await world.publish({ id: 'A' });
  await processed('A');
  expect(await world.effects()).toEqual(['A-3']);
  const [row] = await world.db.query(
    `SELECT consumer, fingerprint IS NOT NULL AS fingerprint, reply,
            expires_at - processed_at = interval '90 days' AS "forItsRetention"
       FROM processed_message WHERE key = 'A'`,
  );
  expect(row).toEqual({
    consumer: 'commissions/order.placed',
    fingerprint: true,
    reply: null,
    forItsRetention: true,
  });
});

it('has one effect for an intent that comes again with other message ids', async () => {
  world.orders.on('B', (_, { effects }, __, run) => effects.insert({ id: `B-${run}`, note: '' }));
  await world.publish({ id: 'B' });
  await processed('B');
  await world.quiet();
  const acked = world.settlements.acked;
  await world.publish({ id: 'B' });
  await world.broker.publish('events', 'order.placed', { id: 'B' }, { messageId: undefined });
  await world.broker.sendToQueue('commissions', { pattern: 'order.placed', data: { id: 'B' } });
  await eventually(() => expect(world.settlements.acked).toBe(acked + 3));
  expect(world.orders.runs('B')).toBe(1);
  expect(await world.effects()).toContain('B-1');
  expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
});

it('does not take another intent with the same message id for a duplicate', async () => {
  for (const id of ['C-1', 'C-2']) {
    await world.broker.publish('events', 'order.placed', { id }, { messageId: 'the same' });
  }
  await processed('C-1');
  await processed('C-2');
  expect(await world.effects()).toEqual(expect.arrayContaining(['C-1', 'C-2']));
});

it('takes a key that has expired and is not yet purged for a duplicate', async () => {
  await world.publish({ id: 'expired' });
  await processed('expired');
  await world.db.query(
    `UPDATE processed_message SET expires_at = now() - interval '1 day' WHERE key = 'expired'`,
  );
  await world.quiet();
  const acked = world.settlements.acked;
  await world.publish({ id: 'expired' });
  await eventually(() => expect(world.settlements.acked).toBe(acked + 1));
  expect(world.orders.runs('expired')).toBe(1);
});

it('runs again when the key is gone', async () => {
  world.orders.on('gone', (_, { effects }, __, run) =>
    effects.insert({ id: `gone-${run}`, note: '' }),
  );
  await world.publish({ id: 'gone' });
  await processed('gone');
  await world.db.query(`DELETE FROM processed_message WHERE key = 'gone'`);
  await world.publish({ id: 'gone' });
  await processed('gone');
  await eventually(async () =>
    expect(await world.effects()).toEqual(expect.arrayContaining(['gone-1', 'gone-2'])),
  );
});

it('processes a message that comes back from the dead letters', async () => {
  let repaired = false;
  world.orders.on('redrive', async (_, { effects }) => {
    await effects.insert({ id: 'redrive', note: '' });
    if (!repaired) throw new Error('not yet');
  });
  await world.publish({ id: 'redrive' });
  const dead = await world.deadLetter();
  expect(await world.keys()).not.toContain('redrive');
  repaired = true;
  await world.broker.publish('events', 'order.placed', dead.body);
  await processed('redrive');
  expect(await world.effects()).toContain('redrive');
});

it('compares consumers and keys byte by byte', async () => {
  const columns = await world.db.query(
    `SELECT a.attname AS name, c.collname AS collation
       FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation
      WHERE a.attrelid IN ('processed_message'::regclass, 'processed_message_pk'::regclass)
        AND a.attname IN ('consumer', 'key')`,
  );
  expect(columns).toHaveLength(4);
  expect(new Set(columns.map(({ collation }) => collation as string))).toEqual(new Set(['C']));
  const twins = ['Straße', 'Strasse', 'STRASSE', 'e\u0301', '\u00e9', 'a b', 'a  b', 'a\u00adb'];
  for (const id of twins) await world.publish({ id });
  await eventually(async () => expect(await world.keys()).toEqual(expect.arrayContaining(twins)));
  expect(await world.effects()).toEqual(expect.arrayContaining(twins));
});
