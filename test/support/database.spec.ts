import { Client } from 'pg';
import { createTestDatabase, eventually, useCleanup, type TestDatabase } from './index.js';

const cleanup = useCleanup();
const perTest = useCleanup('each');
let db: TestDatabase;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase({ migrated: false }));
  await db.query('CREATE TABLE thing (id int PRIMARY KEY)');
});

async function session(
  applicationName: string,
): Promise<{ client: Client; ended: Promise<unknown> }> {
  const client = new Client({ connectionString: db.url, application_name: applicationName });
  const ended = new Promise((resolve) => client.on('error', resolve));
  await client.connect();
  perTest.defer(() => client.end());
  return { client, ended };
}

it('starts from the migrated template', async () => {
  const migrated = perTest.use(await createTestDatabase());

  expect(await migrated.query('SELECT * FROM processed_message')).toEqual([]);
});

it('shows who waits for whom, and for which lock', async () => {
  const { client: first } = await session('first');
  const { client: second } = await session('second');
  await first.query('BEGIN');
  await first.query('INSERT INTO thing VALUES (1)');
  const waiting = second.query('INSERT INTO thing VALUES (1)');

  await eventually(async () => {
    const [holder, waiter] = await db.activity();
    expect(holder).toMatchObject({ applicationName: 'first', state: 'idle in transaction' });
    expect(waiter).toMatchObject({ state: 'active', waitsFor: 'Lock: transactionid' });
    expect(waiter?.blockedBy).toEqual([holder?.pid]);
  });
  const locks = await db.locks();
  expect(locks).toContainEqual(expect.objectContaining({ type: 'transactionid', granted: false }));
  expect(locks).toContainEqual(expect.objectContaining({ relation: 'thing', granted: true }));

  await first.query('ROLLBACK');
  await waiting;
});

it('ends the sessions that the filter picks', async () => {
  const { ended } = await session('doomed');
  const { client: spared } = await session('spared');

  const count = await db.terminateBackends(({ applicationName }) => applicationName === 'doomed');

  expect(count).toBe(1);
  expect(await ended).toMatchObject({ code: '57P01' });
  expect((await spared.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
});
