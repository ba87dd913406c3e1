import { outsideTransaction } from '../../src/database/index.js';
import { Effect, startFixture, type Fixture, type Orders } from '../idempotency/orders.fixture.js';
import { eventually, useCleanup } from '../support/index.js';

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, { config: { retryDelaysMs: [10] } });
});

/** Every way that ordinary TypeORM code reaches the database, each inserting the row `id`. */
const ways: Record<string, (id: string, tools: Orders) => Promise<unknown>> = {
  'an injected repository inserts': (id, { effects }) => effects.insert({ id, note: '' }),
  'an injected repository saves': (id, { effects }) => effects.save({ id, note: '' }),
  'a repository query builder': (id, { effects }) =>
    effects.createQueryBuilder().insert().values({ id, note: '' }).execute(),
  'a repository query': (id, { effects }) =>
    effects.query(`INSERT INTO effect VALUES ($1, '')`, [id]),
  'an injected EntityManager': (id, { manager }) => manager.insert(Effect, { id, note: '' }),
  "an EntityManager's repository": (id, { manager }) =>
    manager.getRepository(Effect).save({ id, note: '' }),
  "an EntityManager's transaction": (id, { manager }) =>
    manager.transaction((nested) => nested.insert(Effect, { id, note: '' })),
  'a DataSource query': (id, { dataSource }) =>
    dataSource.query(`INSERT INTO effect VALUES ($1, '')`, [id]),
  'a DataSource query builder': (id, { dataSource }) =>
    dataSource.createQueryBuilder().insert().into(Effect).values({ id, note: '' }).execute(),
  "a DataSource's transaction, past its manager": (id, { dataSource, effects }) =>
    dataSource.transaction(() => effects.insert({ id, note: '' })),
  'an extended repository': (id, { dataSource }) =>
    dataSource
      .getRepository(Effect)
      .extend({
        add: (one: string) => dataSource.getRepository(Effect).save({ id: one, note: '' }),
      })
      .add(id),
  'a query runner made by hand, with its own transaction': async (id, { dataSource }) => {
    const runner = dataSource.createQueryRunner();
    await runner.connect();
    await runner.startTransaction();
    try {
      await runner.manager.insert(Effect, { id, note: '' });
      await runner.commitTransaction();
    } finally {
      await runner.release();
    }
  },
  'a query runner that is released before the next query': async (id, { dataSource, effects }) => {
    const runner = dataSource.createQueryRunner();
    await runner.query('SELECT 1');
    await runner.release();
    await effects.insert({ id, note: '' });
  },
  'work in a timer that is awaited': (id, { effects }) =>
    new Promise((resolve, reject) => {
      setTimeout(() => void effects.insert({ id, note: '' }).then(resolve, reject), 5);
    }),
};

describe.each(Object.entries(ways))('%s', (name, insert) => {
  it('is committed with the key', async () => {
    const id = `commits: ${name}`;
    world.orders.on(id, (_, tools) => insert(id, tools));
    await world.publish({ id });
    await eventually(async () => expect(await world.keys()).toContain(id));
    expect(await world.effects()).toContain(id);
  });

  it('is rolled back with the key', async () => {
    const id = `fails: ${name}`;
    let seen: unknown[] = [];
    world.orders.on(id, async (_, tools) => {
      await insert(id, tools);
      seen = await tools.effects.find({ where: { id } });
      throw new Error('fails after its effect');
    });
    await world.publish({ id });
    expect(await world.deadLetter()).toMatchObject({ reason: 'attempts-exhausted' });
    expect(seen).toHaveLength(1);
    expect(await world.effects()).not.toContain(id);
    expect(await world.keys()).not.toContain(id);
  });
});

it('runs parallel saves in the one transaction', async () => {
  const ids = Array.from({ length: 20 }, (_, index) => `parallel-${index}`);
  world.orders.on('parallel', (_, { effects }) =>
    Promise.all(ids.map((id) => effects.save({ id, note: 'parallel' }))),
  );
  await world.publish({ id: 'parallel' });
  await eventually(async () => expect(await world.keys()).toContain('parallel'));
  const transactions = await world.db.query(
    `SELECT xmin, count(*)::int AS rows FROM effect WHERE note = 'parallel' GROUP BY xmin
      UNION ALL SELECT xmin, 0 FROM processed_message WHERE key = 'parallel'`,
  );
  expect(transactions).toEqual([
    { xmin: transactions[0]!.xmin, rows: 20 },
    { xmin: transactions[0]!.xmin, rows: 0 },
  ]);
});

it('keeps what outsideTransaction wrote when the handler rolls back', async () => {
  world.orders.on('outside', async (_, { effects }, __, run) => {
    await effects.insert({ id: 'inside', note: '' });
    await outsideTransaction(() => effects.insert({ id: `outside-${run}`, note: '' }));
    throw new Error('fails after both');
  });
  await world.publish({ id: 'outside' });
  await world.deadLetter();
  const effects = await world.effects();
  expect(effects).toEqual(expect.arrayContaining(['outside-1', 'outside-2']));
  expect(effects).not.toContain('inside');
});

it('runs a transaction of its own inside outsideTransaction', async () => {
  world.orders.on('own', async (_, { dataSource, effects }) => {
    await outsideTransaction(() =>
      dataSource.transaction((own) => own.insert(Effect, { id: 'own-1', note: '' })),
    );
    expect(await effects.findBy({ id: 'own-1' })).toHaveLength(1);
    throw new Error('fails afterwards');
  });
  await world.publish({ id: 'own' });
  expect((await world.deadLetter()).error).toContain('duplicate key');
  expect(await world.effects()).toContain('own-1');
});

it('refuses to stream, and says so', async () => {
  world.orders.on('stream', async (_, { effects }) => {
    await effects.createQueryBuilder().stream();
  });
  await world.publish({ id: 'stream' });
  expect((await world.deadLetter()).error).toMatch(/stream/i);
});
