import { CREATE_EFFECT, Gate, startFixture, type Fixture } from '../idempotency/orders.fixture.js';
import { readiness } from '../messaging/orders.js';
import {
  createTestDatabase,
  eventually,
  ownPostgresObstacle,
  startOwnPostgres,
  useCleanup,
  type OwnPostgres,
  type TestDatabase,
} from '../support/index.js';
import { withAdmin } from '../support/postgres-admin.js';

const obstacle = await ownPostgresObstacle();
const describeIt = obstacle === undefined ? describe : describe.skip;
const because = obstacle === undefined ? '' : `, skipped because ${obstacle}`;

const ROLE = 'service';
const CONCURRENCY = 8;
const COUNT = 200;

describeIt(`a PostgreSQL that really fails${because}`, () => {
  const cleanup = useCleanup();
  let server: OwnPostgres;
  let db: TestDatabase;
  let world: Fixture;
  const attempts = new Set<unknown>();

  /** Ids of this test, whose handlers note their attempts, and those of the second half wait. */
  let all: string[] = [];
  let waiting: Gate;

  beforeAll(async () => {
    server = cleanup.use(await startOwnPostgres());
    db = cleanup.use(await createTestDatabase({ serverUrl: server.url }));
    // No superuser, whom no limit of connections stops.
    await db.query(`
      CREATE ROLE ${ROLE} LOGIN PASSWORD '${ROLE}';
      ${CREATE_EFFECT};
      GRANT ALL ON ALL TABLES IN SCHEMA public TO ${ROLE};`);
    const url = new URL(db.url);
    url.username = url.password = ROLE;
    const sharing = Object.create(db, { url: { value: url.href } }) as TestDatabase;
    world = await startFixture(cleanup, { sharing, config: { concurrency: CONCURRENCY } });
  });

  beforeEach(() => {
    const prefix = expect.getState().currentTestName!;
    all = Array.from(
      { length: COUNT },
      (_, index) => `${prefix} ${String(index).padStart(3, '0')}`,
    );
    waiting = new Gate();
    attempts.clear();
    for (const [index, id] of all.entries()) {
      world.orders.on(id, async (_, { effects }, context) => {
        attempts.add(context.getMessage().properties.headers?.['x-attempt']);
        await effects.insert({ id, note: '' });
        if (index >= COUNT / 2) await waiting.opened;
      });
    }
  });

  const admin = (sql: string): Promise<unknown> =>
    withAdmin((client) => client.query(sql), server.url);

  const publishAll = (): Promise<unknown> => Promise.all(all.map((id) => world.publish({ id })));

  async function paused(reason: string): Promise<void> {
    await eventually(async () =>
      expect(await readiness(world.app)).toMatchObject({
        status: 503,
        body: expect.stringContaining(reason) as string,
      }),
    );
  }

  async function allProcessedOnce(): Promise<void> {
    waiting.open();
    const done = async (): Promise<string[]> =>
      (await world.effects()).filter((id) => id.startsWith(all[0]!.slice(0, -4)));
    await eventually(async () => expect(await done()).toEqual(all), { timeoutMs: 25_000 });
    await world.quiet();
    expect([...attempts]).toEqual([undefined]);
    expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
    await eventually(async () => expect(await readiness(world.app)).toMatchObject({ status: 200 }));
  }

  it.each(['SIGINT', 'SIGKILL'] as const)(
    'charges no message for a restart after %s, with transactions open',
    async (signal) => {
      await publishAll();
      await eventually(() => expect(world.orders.runs(all[COUNT / 2]!)).toBe(1));
      await server.stop(signal);
      waiting.open();
      await paused('paused during an outage');
      await server.start();
      await allProcessedOnce();
    },
    60_000,
  );

  it('charges no message while there are too few connections', async () => {
    waiting.open();
    await admin(`ALTER ROLE ${ROLE} CONNECTION LIMIT 1`);
    await db.terminateBackends();
    await publishAll();
    await eventually(() => expect(world.app.log()).toContain('too many connections for role'));
    await eventually(() => expect(world.settlements.nacked).toBeGreaterThan(CONCURRENCY));
    await admin(`ALTER ROLE ${ROLE} CONNECTION LIMIT -1`);
    await allProcessedOnce();
  }, 60_000);

  it('charges no message while the database is read-only, and leaves the sessions that stay so', async () => {
    await admin(`ALTER DATABASE "${db.name}" SET default_transaction_read_only = on`);
    await db.terminateBackends();
    await publishAll();
    await paused('paused during an outage');
    await paused('the database is read-only');
    await eventually(async () =>
      expect(await world.broker.depth('commissions')).toEqual({ ready: COUNT, consumers: 0 }),
    );
    // Sessions that have begun meanwhile go on as they are.
    await admin(`ALTER DATABASE "${db.name}" RESET default_transaction_read_only`);
    await allProcessedOnce();
  }, 60_000);
});
