import { startFixture, type Fixture } from '../idempotency/orders.fixture.js';
import { readiness } from '../messaging/orders.js';
import { eventually, holds, useCleanup } from '../support/index.js';

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, { config: { concurrency: 2, poolSize: 6 } });
});

/** What a probe asks PostgreSQL. */
const QUESTIONS = ['pg_is_in_recovery', 'to_regclass'];

it('goes on with its messages, however many probes the network swallows', async () => {
  const stop = world.databaseProxy.intercept((chunk) =>
    QUESTIONS.some((question) => chunk.includes(question)) ? 'drop' : 'forward',
  );
  // Several at once, and again before those before them have been given up.
  for (let round = 0; round < 3; round++) {
    const answers = await Promise.all(Array.from({ length: 10 }, () => readiness(world.app)));
    for (const answer of answers) {
      expect(answer).toMatchObject({
        status: 503,
        body: expect.stringContaining('no answer within') as string,
      });
    }
    await world.publish({ id: `beside-${round}` });
    await eventually(async () => expect(await world.effects()).toContain(`beside-${round}`));
    await holds(async () => expect((await world.db.activity()).length).toBeLessThanOrEqual(6), 50);
  }
  expect(world.app.log()).not.toContain('Consuming pauses');
  stop();
  await eventually(async () => expect(await readiness(world.app)).toMatchObject({ status: 200 }));
});
