import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Pool } from 'pg';
import { CREATE_EFFECT, Gate, startFixture, type Fixture } from '../idempotency/orders.fixture.js';
import { readiness } from '../messaging/orders.js';
import {
  createTestDatabase,
  eventually,
  pgBouncerObstacle,
  startPgBouncer,
  useCleanup,
  type Cleanup,
  type PgBouncer,
  type TestDatabase,
} from '../support/index.js';
import { projectRoot } from '../support/project.js';

/** Fewer than messages in work. */
const SESSIONS = 5;

const obstacle = await pgBouncerObstacle();
const describeIt = obstacle === undefined ? describe : describe.skip;
const because = obstacle === undefined ? '' : `, skipped because PgBouncer is ${obstacle}`;

const cleanup = useCleanup();

interface Behind extends Fixture {
  bouncer: PgBouncer;
}

/** The whole service, connected to nothing but PgBouncer; the harness looks at PostgreSQL itself. */
async function startBehind(
  release: Cleanup,
  config: { preparedStatements: boolean },
): Promise<Behind> {
  const db = release.use(await createTestDatabase());
  await db.query(CREATE_EFFECT);
  const bouncer = release.use(await startPgBouncer(db.url, SESSIONS));
  const sharing = Object.create(db, { url: { value: bouncer.url } }) as TestDatabase;
  const world = await startFixture(release, { sharing, config: { ...config, concurrency: 16 } });
  return { ...world, db, bouncer };
}

const ids = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${prefix}-${String(index).padStart(3, '0')}`);

async function publishAll(world: Fixture, all: readonly string[]): Promise<void> {
  await Promise.all(all.map((id) => world.publish({ id })));
}

async function effectsOf(world: Fixture, prefix: string): Promise<string[]> {
  return (await world.effects()).filter((id) => id.startsWith(`${prefix}-`));
}

describeIt(`behind PgBouncer in transaction mode, without prepared statements${because}`, () => {
  let world: Behind;

  beforeAll(async () => {
    world = await startBehind(cleanup, { preparedStatements: false });
  });

  it('is ready', async () => {
    expect(await readiness(world.app)).toMatchObject({ status: 200 });
  });

  it('has one effect for each key, of messages that come twice, on fewer sessions than messages', async () => {
    const all = ids('twice', 150);
    await publishAll(world, [...all, ...all]);
    await eventually(async () => expect(await effectsOf(world, 'twice')).toEqual(all), {
      timeoutMs: 25_000,
    });
    await world.quiet();
    expect(await effectsOf(world, 'twice')).toEqual(all);
    expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
    // No statement was sent that this PgBouncer cannot carry: that hands messages back.
    expect(world.settlements.nacked).toBe(0);
    const { length } = await world.db.activity();
    expect(length).toBeGreaterThan(1);
    expect(length).toBeLessThanOrEqual(SESSIONS);
  });

  it('leaves no timeout to the next client of a session', async () => {
    await publishAll(world, ids('timeouts', 20));
    await world.quiet();
    const other = new Pool({ connectionString: world.bouncer.url, max: SESSIONS });
    const clients = await Promise.all(Array.from({ length: SESSIONS }, () => other.connect()));
    // Each in a transaction, so that every session is looked at.
    await Promise.all(clients.map((client) => client.query('BEGIN')));
    const settings = await Promise.all(
      clients.map(async (client) => {
        const { rows } = await client.query<Record<string, string>>(
          `SELECT current_setting('lock_timeout') AS lock,
                  current_setting('statement_timeout') AS statement`,
        );
        return rows[0];
      }),
    );
    await Promise.all(clients.map((client) => client.query('ROLLBACK')));
    for (const client of clients) client.release();
    await other.end();
    expect(settings).toEqual(clients.map(() => ({ lock: '0', statement: '0' })));
  });

  it('tells a key that comes with another payload', async () => {
    await world.publish({ id: 'reused', amount: 1 });
    await eventually(async () => expect(await world.keys()).toContain('reused'));
    await world.publish({ id: 'reused', amount: 2 });
    expect(await world.deadLetter()).toMatchObject({ reason: 'key-reuse' });
  });

  it('rolls back what a failed handler wrote, with its key', async () => {
    world.orders.on('fails', async (_, { effects }) => {
      await effects.insert({ id: 'fails', note: '' });
      throw new Error('fails after its effect');
    });
    await world.publish({ id: 'fails' });
    expect(await world.deadLetter()).toMatchObject({ reason: 'attempts-exhausted' });
    expect(await world.effects()).not.toContain('fails');
    expect(await world.keys()).not.toContain('fails');
  });

  it('takes a restart of PgBouncer for an outage: no attempt, no dead letter, one effect', async () => {
    const all = ids('restart', 200);
    const attempts = new Set<unknown>();
    const stopped = new Gate();
    for (const id of all) {
      world.orders.on(id, async (_, { effects }, context) => {
        attempts.add(context.getMessage().properties.headers?.['x-attempt']);
        await effects.insert({ id, note: '' });
        if (id >= 'restart-100') await stopped.opened;
      });
    }
    await publishAll(world, all);
    await eventually(() => expect(world.orders.runs('restart-100')).toBe(1));
    await world.bouncer.stop();
    stopped.open();
    await eventually(async () => {
      const { status, body } = await readiness(world.app);
      expect({ status, body }).toEqual({
        status: 503,
        body: expect.stringContaining('paused during an outage') as string,
      });
    });
    expect((await effectsOf(world, 'restart')).length).toBeLessThanOrEqual(100);
    await world.bouncer.start();
    await eventually(async () => expect(await effectsOf(world, 'restart')).toEqual(all), {
      timeoutMs: 25_000,
    });
    await world.quiet();
    expect([...attempts]).toEqual([undefined]);
    expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
    await eventually(async () => expect(await readiness(world.app)).toMatchObject({ status: 200 }));
  });

  it('migrates an empty database, by two programs at once', async () => {
    const db = cleanup.use(await createTestDatabase({ migrated: false }));
    const bouncer = cleanup.use(await startPgBouncer(db.url, SESSIONS));
    const migrate = (): Promise<unknown> =>
      promisify(execFile)(process.execPath, ['dist/src/migrate.js'], {
        cwd: projectRoot,
        env: { PATH: process.env.PATH, DATABASE_URL: bouncer.url },
      });
    await Promise.all([migrate(), migrate()]);
    const applied = await db.query<{ name: string }>('SELECT name FROM migrations');
    expect(applied.length).toBeGreaterThan(0);
    expect(new Set(applied.map(({ name }) => name)).size).toBe(applied.length);
    expect(await db.query('SELECT * FROM processed_message')).toEqual([]);
    expect((await db.query('SELECT FROM pg_locks WHERE locktype = $1', ['advisory'])).length).toBe(
      0,
    );
  });
});

describeIt(`behind PgBouncer that knows no prepared statements, with them${because}`, () => {
  const release = useCleanup();

  it('hands messages back, burns none, and says which switch to turn', async () => {
    const world = await startBehind(release, { preparedStatements: true });
    const all = ids('prepared', 40);
    await publishAll(world, all);
    await eventually(() => expect(world.app.log()).toContain('DATABASE_PREPARED_STATEMENTS=off'));
    await eventually(() => expect(world.settlements.nacked).toBeGreaterThan(0));
    expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
    const kept = (await effectsOf(world, 'prepared')).length;
    expect(kept).toBeLessThan(all.length);
  });
});
