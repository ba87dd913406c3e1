import type { ClientBase, PoolClient } from 'pg';
import { startFixture, type Fixture, type Orders } from '../idempotency/orders.fixture.js';
import { eventually, useCleanup } from '../support/index.js';

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, { config: { retryDelaysMs: [10] } });
});

type Break = (tools: Orders) => Promise<unknown>;

const query =
  (sql: string): Break =>
  ({ dataSource }) =>
    dataSource.query(sql);

const raw =
  (...statements: string[]): Break =>
  async ({ dataSource }) => {
    const client = (await dataSource.createQueryRunner().connect()) as ClientBase;
    for (const sql of statements) await client.query(sql);
  };

/** Each is refused before PostgreSQL sees it. */
const ends: Record<string, Break> = {
  COMMIT: query('COMMIT'),
  'commit and chain': query('commit and chain;'),
  END: query('  END TRANSACTION'),
  ROLLBACK: query('ROLLBACK'),
  'ROLLBACK WORK': query('rollback work'),
  'ROLLBACK AND CHAIN': query('ROLLBACK AND CHAIN'),
  ABORT: query('ABORT'),
  BEGIN: query('BEGIN'),
  'START TRANSACTION': query('START TRANSACTION READ ONLY'),
  'PREPARE TRANSACTION': query(`PREPARE TRANSACTION 'x'`),
  'COMMIT behind a comment': query('-- done\n /* really /* done */ */ COMMIT'),
  'COMMIT behind a semicolon': query('; COMMIT'),
  'COMMIT among several statements': query('SELECT 1; COMMIT'),
  'COMMIT and BEGIN among several statements': query('SELECT 1; COMMIT; BEGIN'),
  'COMMIT AND CHAIN among several statements': query('SELECT 1; COMMIT AND CHAIN'),
  'ROLLBACK among several statements': query('SELECT 1; ROLLBACK'),
  'ROLLBACK and BEGIN among several statements': query('SELECT 1; ROLLBACK; BEGIN'),
  'ROLLBACK AND CHAIN among several statements': query('SELECT 1; ROLLBACK AND CHAIN'),
  'COMMIT on the raw client': raw('COMMIT'),
  'COMMIT and BEGIN on the raw client': raw('COMMIT', 'BEGIN'),
  'ROLLBACK on the raw client': raw('ROLLBACK'),
  'ROLLBACK and BEGIN on the raw client': raw('ROLLBACK', 'BEGIN'),
  'ROLLBACK AND CHAIN on the raw client': raw('ROLLBACK AND CHAIN'),
  "the query runner's commitTransaction": ({ dataSource }) =>
    dataSource.createQueryRunner().commitTransaction(),
  "the query runner's rollbackTransaction": ({ dataSource }) =>
    dataSource.createQueryRunner().rollbackTransaction(),
};

describe.each(Object.entries(ends))('a handler that runs %s', (name, end) => {
  it('fails with nothing stored', async () => {
    const id = `refused ${name}`;
    world.orders.on(id, async (_, tools) => {
      await tools.effects.insert({ id, note: '' });
      await end(tools);
    });
    await world.publish({ id });
    expect((await world.deadLetter()).error).toMatch(/TransactionControlError/);
    expect(await world.effects()).not.toContain(id);
    expect(await world.keys()).not.toContain(id);
  });
});

it('fails also when the handler catches the refusal', async () => {
  world.orders.on('catches', async (_, { effects, dataSource }) => {
    await effects.insert({ id: 'catches', note: '' });
    await dataSource.query('ROLLBACK').catch(() => undefined);
  });
  await world.publish({ id: 'catches' });
  expect((await world.deadLetter()).error).toMatch(/TransactionControlError/);
  expect(await world.effects()).not.toContain('catches');
  expect(await world.keys()).not.toContain('catches');
});

it('leaves the connection to its transaction when a handler releases the raw client', async () => {
  world.orders.on('releases', async (_, { effects, dataSource }) => {
    const client = (await dataSource.createQueryRunner().connect()) as PoolClient;
    await client.query(`INSERT INTO effect VALUES ('releases-1', '')`);
    client.release();
    await effects.insert({ id: 'releases-2', note: '' });
  });
  await world.publish({ id: 'releases' });
  await eventually(async () => expect(await world.keys()).toContain('releases'));
  expect(await world.effects()).toEqual(expect.arrayContaining(['releases-1', 'releases-2']));
});

it.each([
  ['several harmless statements', `SELECT 1; SAVEPOINT a; ROLLBACK TO a; RELEASE a; SELECT 2`],
  ['ROLLBACK TO SAVEPOINT by hand', 'SAVEPOINT b; ROLLBACK TRANSACTION TO SAVEPOINT b'],
  ['SET CONSTRAINTS', 'SET CONSTRAINTS ALL IMMEDIATE'],
  ['a block that begins and ends', 'DO $$ BEGIN PERFORM 1; END $$'],
  ['a comment about COMMIT', '/* COMMIT */ SELECT 1 -- COMMIT'],
  ['an empty statement', ''],
])('lets %s pass', async (name, sql) => {
  const id = `passes ${name}`;
  world.orders.on(id, async (_, tools) => {
    await tools.effects.insert({ id: `${id} 1`, note: '' });
    await tools.dataSource.query(sql);
    await tools.effects.insert({ id: `${id} 2`, note: '' });
  });
  await world.publish({ id });
  await eventually(async () => expect(await world.keys()).toContain(id));
  expect(world.orders.runs(id)).toBe(1);
  expect((await world.effects()).filter((one) => one.startsWith(id))).toHaveLength(2);
});
