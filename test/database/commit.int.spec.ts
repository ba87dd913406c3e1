import { Effect, startFixture, type Fixture } from '../idempotency/orders.fixture.js';
import { atPoint, eventually, holds, useCleanup } from '../support/index.js';

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, {
    tables: `
      CREATE TABLE parent (id text PRIMARY KEY);
      CREATE TABLE child (
        parent text NOT NULL REFERENCES parent DEFERRABLE INITIALLY DEFERRED);
      CREATE FUNCTION raise_late() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'late' USING ERRCODE = TG_ARGV[0]; END $$;`,
  });
});

async function lateError(sqlState: string, when: string): Promise<void> {
  await world.db.query(`
    CREATE CONSTRAINT TRIGGER late AFTER INSERT ON effect DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW WHEN (NEW.id = '${when}') EXECUTE FUNCTION raise_late('${sqlState}')`);
}

describe.each(['before-commit', 'committed'] as const)(
  'the connection is lost at COMMIT, %s',
  (when) => {
    it('acknowledges only after another delivery has found out, and has one effect', async () => {
      const id = `cut ${when}`;
      const committed = when === 'committed';
      const acked = world.settlements.acked;
      // The database stays away, so that whatever the first delivery was told is all that there is.
      const cutForGood = (): 'cut' => {
        world.databaseProxy.refuse();
        return 'cut';
      };
      const stop = world.databaseProxy.intercept(
        atPoint(when, cutForGood, { onlyAfter: /INTO "effect"/ }),
      );
      const cuts = world.databaseProxy.cuts;
      await world.publish({ id });
      await eventually(() => expect(world.databaseProxy.cuts).toBe(cuts + 1));
      stop();
      await eventually(async () =>
        expect(await world.effects()).toEqual(committed ? [expect.stringMatching(when)] : []),
      );
      await holds(async () => {
        expect(world.settlements.acked).toBe(acked);
        expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
      }, 300);

      await world.databaseProxy.accept();
      await eventually(() => expect(world.settlements.acked).toBe(acked + 1));
      expect(await world.db.query('SELECT id FROM effect WHERE id = $1', [id])).toHaveLength(1);
      expect(world.orders.runs(id)).toBe(committed ? 1 : 2);
      await world.quiet();
      await world.db.query('DELETE FROM effect');
    });
  },
);

it('takes an answer to COMMIT that never comes for an unknown outcome, not a failure', async () => {
  world.orders.on('terminated', async (_, { effects, dataSource }, __, run) => {
    await effects.insert({ id: 'terminated', note: String(run) });
    if (run === 1) {
      // The server ends the session while COMMIT runs a deferred trigger.
      await dataSource.query(`SELECT set_config('test.end', 'yes', true)`);
    }
  });
  await world.db.query(`
    CREATE FUNCTION end_session() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        IF current_setting('test.end', true) = 'yes' THEN
          PERFORM pg_terminate_backend(pg_backend_pid());
          PERFORM pg_sleep(1);
        END IF;
        RETURN NULL;
      END $$;
    CREATE CONSTRAINT TRIGGER end_at_commit AFTER INSERT ON effect DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION end_session()`);
  await world.publish({ id: 'terminated' });
  await eventually(async () => expect(await world.keys()).toContain('terminated'));
  await world.quiet();
  expect(world.app.log()).toContain('its outcome is unknown');
  expect(world.orders.runs('terminated')).toBe(2);
  await world.db.query('DROP TRIGGER end_at_commit ON effect');
});

it('rolls back and retries when a deferred constraint fails at COMMIT', async () => {
  world.orders.on('deferred', async (_, { effects, dataSource }, __, run) => {
    await effects.insert({ id: `deferred-${run}`, note: '' });
    await dataSource.query(`INSERT INTO child VALUES ('p')`);
    if (run === 3) await dataSource.query(`INSERT INTO parent VALUES ('p')`);
  });
  await world.publish({ id: 'deferred' });
  await eventually(async () => expect(await world.keys()).toContain('deferred'));
  expect(world.orders.runs('deferred')).toBe(3);
  expect(await world.effects()).toContain('deferred-3');
  expect(await world.effects()).not.toContain('deferred-1');
  expect(await world.db.query('SELECT * FROM child')).toHaveLength(1);
  // An ordinary failure: consuming never paused for it.
  expect(world.app.log()).not.toMatch(/Consuming pauses.*foreign key/);
});

it('runs again at once when the serialization failure comes at COMMIT', async () => {
  await lateError('40001', 'late-40001');
  world.orders.on('late', (_, { effects }, __, run) =>
    effects.insert({ id: run < 3 ? 'late-40001' : 'late-done', note: '' }),
  );
  await world.publish({ id: 'late' });
  await eventually(async () => expect(await world.keys()).toContain('late'));
  expect(world.orders.runs('late')).toBe(3);
  expect(world.app.log()).not.toContain('raise_late');
  expect(await world.effects()).toContain('late-done');
});

it.each([
  ['its own unique violation', `INSERT INTO effect VALUES ('taken', '')`],
  ['a division by zero', 'SELECT 1 / 0'],
  ['a statement that does not parse', 'SELEKT 1'],
])('does not take a handler that swallows %s for a success', async (name, sql) => {
  const id = `swallows ${name}`;
  await world.db.query(`INSERT INTO effect VALUES ('taken', '') ON CONFLICT DO NOTHING`);
  world.orders.on(id, async (_, { effects, dataSource }, __, run) => {
    await effects.insert({ id: `${id}-${run}`, note: '' });
    if (run < 3) await dataSource.query(sql).catch(() => undefined);
  });
  await world.publish({ id });
  await eventually(async () => expect(await world.keys()).toContain(id));
  expect(world.orders.runs(id)).toBe(3);
  expect((await world.effects()).filter((one) => one.startsWith(id))).toEqual([`${id}-3`]);
});

it('dead-letters a handler that swallows a SQL error every time, with that error', async () => {
  world.orders.on('always', async (_, { manager }) => {
    await manager.insert(Effect, { id: 'always', note: '' });
    await manager.insert(Effect, { id: 'always', note: 'again' }).catch(() => undefined);
  });
  await world.publish({ id: 'always' });
  const dead = await world.deadLetter();
  expect(dead.error).toMatch(/TransactionAbortedError.*duplicate key/);
  expect(dead.headers['x-attempt']).toBe(4);
  expect(await world.effects()).not.toContain('always');
  expect(await world.keys()).not.toContain('always');
});

it('finds a swallowed error of a query that nobody awaited', async () => {
  world.orders.on('unseen', async (_, { effects, dataSource }, __, run) => {
    await effects.insert({ id: `unseen-${run}`, note: '' });
    if (run === 1) void dataSource.query('SELECT 1 / 0').catch(() => undefined);
  });
  await world.publish({ id: 'unseen' });
  await eventually(async () => expect(await world.keys()).toContain('unseen'));
  expect((await world.effects()).filter((id) => id.startsWith('unseen'))).toEqual(['unseen-2']);
});
