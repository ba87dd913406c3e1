import { Effect, Gate, startFixture, type Fixture } from '../idempotency/orders.fixture.js';
import { eventually, useCleanup } from '../support/index.js';

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, { config: { retryDelaysMs: [10] } });
});

/** The effects whose ids begin with this. */
async function effectsOf(prefix: string): Promise<string[]> {
  return (await world.effects()).filter((id) => id.startsWith(prefix));
}

async function processed(id: string): Promise<void> {
  await world.publish({ id });
  await eventually(async () => expect(await world.keys()).toContain(id));
  expect(world.orders.runs(id)).toBe(1);
}

it('rolls back a nested transaction alone when its error is caught', async () => {
  world.orders.on('nested', async (_, { dataSource, effects }) => {
    await effects.insert({ id: 'n-kept', note: '' });
    await dataSource
      .transaction(async (nested) => {
        await nested.insert(Effect, { id: 'n-undone', note: '' });
        await dataSource.transaction(() => effects.insert({ id: 'n-undone-deeper', note: '' }));
        throw new Error('only the nested one');
      })
      .catch(() => undefined);
    await effects.insert({ id: 'n-kept-too', note: '' });
  });
  await processed('nested');
  expect(await effectsOf('n-')).toEqual(['n-kept', 'n-kept-too']);
});

it('goes on after a unique violation in a nested transaction', async () => {
  world.orders.on('violation', async (_, { dataSource, effects }) => {
    await effects.insert({ id: 'v-1', note: 'first' });
    await dataSource
      .transaction((nested) => nested.insert(Effect, { id: 'v-1', note: 'second' }))
      .catch(() => undefined);
    await effects.insert({ id: 'v-2', note: '' });
  });
  await processed('violation');
  expect(await effectsOf('v-')).toEqual(['v-1', 'v-2']);
});

it('rolls back parallel nested transactions each by itself', async () => {
  world.orders.on('siblings', async (_, { dataSource, effects }) => {
    const results = await Promise.allSettled(
      ['s-1', 's-2', 's-3', 's-4'].map((id) =>
        dataSource.transaction(async (nested) => {
          await nested.insert(Effect, { id, note: '' });
          await effects.find();
          if (id === 's-2' || id === 's-4') throw new Error('this one alone');
        }),
      ),
    );
    expect(results.map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
      'fulfilled',
      'rejected',
    ]);
  });
  await processed('siblings');
  expect(await effectsOf('s-')).toEqual(['s-1', 's-3']);
});

it('keeps what a nested transaction did when one that began later is rolled back', async () => {
  const secondMayFail = new Gate();
  world.orders.on('staggered', async (_, { dataSource, effects, manager }) => {
    const firstInserted = new Gate();
    const first = dataSource.transaction(async () => {
      await effects.insert({ id: 't-first', note: '' });
      firstInserted.open();
      await effects.find();
    });
    await firstInserted.opened;
    const second = manager
      .transaction(async (nested) => {
        await nested.insert(Effect, { id: 't-second', note: '' });
        await secondMayFail.opened;
        throw new Error('the second alone');
      })
      .catch(() => undefined);
    await first;
    secondMayFail.open();
    await second;
  });
  await processed('staggered');
  expect(await effectsOf('t-')).toEqual(['t-first']);
});

it('nests parallel transactions in a nested one', async () => {
  world.orders.on('deep', async (_, { dataSource, effects }) => {
    const branch = (id: string, fails: boolean): Promise<void> =>
      dataSource.transaction(async (outer) => {
        await effects.insert({ id: `d-${id}`, note: '' });
        await Promise.allSettled([
          outer.transaction((inner) => inner.insert(Effect, { id: `d-${id}-1`, note: '' })),
          dataSource.transaction(async (inner) => {
            await inner.insert(Effect, { id: `d-${id}-2`, note: '' });
            throw new Error('the inner one');
          }),
        ]);
        if (fails) throw new Error('the outer one');
      });
    await Promise.allSettled([branch('a', false), branch('b', true), branch('c', false)]);
  });
  await processed('deep');
  expect(await effectsOf('d-')).toEqual(['d-a', 'd-a-1', 'd-c', 'd-c-1']);
});

it('fails the message when a parallel nested transaction fails and nobody catches it', async () => {
  world.orders.on('uncaught', (_, { dataSource }) =>
    Promise.all(
      ['u-1', 'u-2', 'u-3'].map((id) =>
        dataSource.transaction(async (nested) => {
          await nested.insert(Effect, { id, note: '' });
          if (id === 'u-2') throw new Error('the second fails');
        }),
      ),
    ),
  );
  await world.publish({ id: 'uncaught' });
  expect((await world.deadLetter()).error).toContain('the second fails');
  expect(await effectsOf('u-')).toEqual([]);
  expect(await world.keys()).not.toContain('uncaught');
});
