import { startFixture, type Fixture } from '../idempotency/orders.fixture.js';
import { readiness } from '../messaging/orders.js';
import { eventually, useCleanup } from '../support/index.js';

const cleanup = useCleanup();
let world: Fixture;

/** One connection for the message, and one for each of the two questions of a probe. */
beforeAll(async () => {
  world = await startFixture(cleanup, { config: { concurrency: 1, poolSize: 3 } });
});

/** What a probe asks PostgreSQL. */
const QUESTIONS = ['pg_is_in_recovery', 'to_regclass'];

it('goes on with its messages, however many probes the network swallows', async () => {
  let swallowed = 0;
  const stop = world.databaseProxy.intercept((chunk) => {
    if (!QUESTIONS.some((question) => chunk.includes(question))) return 'forward';
    swallowed++;
    return 'drop';
  });
  // Several at once, and again when those before them have been given up.
  for (let round = 1; round <= 3; round++) {
    const asked = Promise.all(Array.from({ length: 10 }, () => readiness(world.app)));
    await eventually(() => expect(swallowed).toBeGreaterThanOrEqual(2));
    await world.publish({ id: `beside-${round}` });
    // Sooner than a question is given up.
    await eventually(async () => expect(await world.effects()).toContain(`beside-${round}`), {
      timeoutMs: 2_000,
    });
    for (const answer of await asked) {
      expect(answer).toMatchObject({
        status: 503,
        body: expect.stringContaining('no answer within') as string,
      });
    }
  }
  expect(world.app.log()).not.toContain('Consuming pauses');
  stop();
  await eventually(async () => expect(await readiness(world.app)).toMatchObject({ status: 200 }));
});
