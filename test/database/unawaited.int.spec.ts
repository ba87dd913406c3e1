import type { ClientBase } from 'pg';
import { outsideTransaction } from '../../src/database/index.js';
import { Gate, startFixture, type Fixture, type Orders } from '../idempotency/orders.fixture.js';
import { eventually, useCleanup } from '../support/index.js';

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, { config: { retryDelaysMs: [10] } });
});

const ways: Record<string, (id: string, tools: Orders) => Promise<unknown>> = {
  'a repository': (id, { effects }) => effects.insert({ id, note: '' }),
  'a save': (id, { effects }) => effects.save({ id, note: '' }),
  'a nested transaction': (id, { dataSource, effects }) =>
    dataSource.transaction(() => effects.insert({ id, note: '' })),
  'a query builder': (id, { dataSource }) =>
    dataSource.createQueryBuilder().insert().into('effect').values({ id, note: '' }).execute(),
  'a transaction by hand': async (id, { dataSource }) => {
    const runner = dataSource.createQueryRunner();
    await runner.startTransaction();
    await runner.query('INSERT INTO effect VALUES ($1)', [id]);
    await runner.commitTransaction();
  },
  'a raw client': async (id, { dataSource }) => {
    const client = (await dataSource.createQueryRunner().connect()) as ClientBase;
    await client.query(`INSERT INTO effect VALUES ($1, '')`, [id]);
  },
};

describe.each(Object.entries(ways))('%s, used after the handler returned', (name, write) => {
  it('writes nothing, and the log says so', async () => {
    const gate = new Gate();
    const id = `late ${name}`;
    let told: unknown;
    world.orders.on(id, async (_, tools) => {
      await tools.effects.insert({ id: `${id}: awaited`, note: '' });
      void gate.opened
        .then(() => write(id, tools))
        .then(
          () => (told = 'written'),
          (error: unknown) => (told = error),
        );
    });
    await world.publish({ id });
    await eventually(async () => expect(await world.keys()).toContain(id));
    await world.quiet();
    world.app.logs.length = 0;
    gate.open();
    await eventually(() => expect(String(told)).toContain('TransactionEndedError'));
    expect(world.app.logs.map(({ level }) => level)).toContain('error');
    expect(world.app.log()).toContain('a promise was not awaited');
    expect((await world.effects()).filter((one) => one.startsWith(id))).toEqual([`${id}: awaited`]);
  });
});

it('keeps a raw client that a handler kept from writing into the next transaction', async () => {
  const gate = new Gate();
  let told: unknown;
  world.orders.on('keeps', async (_, { dataSource }) => {
    const client = (await dataSource.createQueryRunner().connect()) as ClientBase;
    void gate.opened.then(async () => {
      try {
        await client.query(`INSERT INTO effect VALUES ('kept', '')`);
      } catch (error) {
        told = error;
      }
    });
  });
  await world.publish({ id: 'keeps' });
  await eventually(async () => expect(await world.keys()).toContain('keeps'));
  world.orders.on('next', async () => {
    gate.open();
    await eventually(() => expect(String(told)).toContain('TransactionEndedError'));
  });
  await world.publish({ id: 'next' });
  await eventually(async () => expect(await world.keys()).toContain('next'));
  expect(await world.effects()).not.toContain('kept');
});

it('says that queries were running when the handler returned', async () => {
  world.orders.on('running', async (_, { dataSource }) => {
    void dataSource.query('SELECT pg_sleep(0.05)');
  });
  await world.publish({ id: 'running' });
  await eventually(async () => expect(await world.keys()).toContain('running'));
  expect(world.app.log()).toContain('returned while 1 of its queries were running');
});

it('lets background work go on that was started outside of the transaction', async () => {
  const gate = new Gate();
  world.orders.on('background', async (_, { effects }) => {
    outsideTransaction(() => {
      void gate.opened.then(() => effects.insert({ id: 'background', note: '' }));
    });
  });
  await world.publish({ id: 'background' });
  await eventually(async () => expect(await world.keys()).toContain('background'));
  gate.open();
  await eventually(async () => expect(await world.effects()).toContain('background'));
});
