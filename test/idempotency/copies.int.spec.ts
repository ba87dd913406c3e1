import { eventually, holds, useCleanup } from '../support/index.js';
import { Gate, startFixture, type Fixture } from './orders.fixture.js';

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, { config: { concurrency: 12, poolSize: 14 } });
});

/** Publishes copies as a resend does, each with a message id of its own. */
async function publishCopies(id: string, count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => world.publish({ id })));
}

const inTransaction = async (): Promise<number> =>
  (await world.db.activity()).filter(({ state }) => state !== 'idle').length;

it('holds one connection for ten copies of one key, and has one effect', async () => {
  const gate = new Gate();
  world.orders.on('ten', async (_, { effects }, __, run) => {
    await effects.insert({ id: `ten-${run}-a`, note: '' });
    await gate.opened;
    await effects.insert({ id: `ten-${run}-b`, note: '' });
  });
  await world.quiet();
  const acked = world.settlements.acked;
  await publishCopies('ten', 10);
  await eventually(() => expect(world.settlements.unsettled).toBe(10));
  await eventually(async () => expect(await inTransaction()).toBe(1));
  await holds(async () => expect(await inTransaction()).toBe(1), 200);
  // The others still get through.
  await world.publish({ id: 'beside' });
  await eventually(async () => expect(await world.keys()).toContain('beside'));

  gate.open();
  await eventually(() => expect(world.settlements.acked).toBe(acked + 11));
  expect(world.orders.runs('ten')).toBe(1);
  expect((await world.effects()).filter((id) => id.startsWith('ten'))).toEqual([
    'ten-1-a',
    'ten-1-b',
  ]);
});

it('runs the next copy when the first fails, and takes the rest for duplicates', async () => {
  const gate = new Gate();
  world.orders.on('taken-over', async (_, { effects }, __, run) => {
    await effects.insert({ id: `taken-over-${run}`, note: '' });
    await gate.opened;
    if (run === 1) throw new Error('the first fails');
  });
  await world.quiet();
  const acked = world.settlements.acked;
  await publishCopies('taken-over', 5);
  await eventually(() => expect(world.settlements.unsettled).toBe(5));
  gate.open();
  // Five, and the retry of the one that failed.
  await eventually(() => expect(world.settlements.acked).toBe(acked + 6));
  expect(world.orders.runs('taken-over')).toBe(2);
  expect((await world.effects()).filter((id) => id.startsWith('taken-over'))).toEqual([
    'taken-over-2',
  ]);
  await world.quiet();
});

it('processes fifty keys in ten copies each with one effect per key', async () => {
  const ids = Array.from({ length: 50 }, (_, index) => `many-${index}`);
  for (const id of ids) {
    world.orders.on(id, async (_, { effects }, __, run) => {
      await effects.insert({ id: `${id}-${run}`, note: 'many' });
      await effects.find({ take: 1 });
    });
  }
  await world.quiet();
  const acked = world.settlements.acked;
  await Promise.all(ids.map((id) => publishCopies(id, 10)));
  await eventually(() => expect(world.settlements.acked).toBe(acked + 500));
  expect((await world.effects()).filter((id) => id.startsWith('many'))).toEqual(
    ids.map((id) => `${id}-1`).sort(),
  );
  expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
});

describe('another process holds the key', () => {
  let other: Fixture;

  beforeAll(async () => {
    other = await startFixture(cleanup, { sharing: world.db });
  });

  const waiting = async (): Promise<number> =>
    (await world.db.activity()).filter(({ blockedBy }) => blockedBy.length > 0).length;

  /** The other process is in its handler, and this one waits for its claim. */
  async function bothAtWork(id: string, end: (gate: Gate) => Promise<void>): Promise<Gate> {
    const gate = new Gate();
    other.orders.on(id, async (_, { effects }, __, run) => {
      await effects.insert({ id: `${id}-other-${run}`, note: '' });
      await end(gate);
    });
    world.orders.on(id, (_, { effects }) => effects.insert({ id: `${id}-here`, note: '' }));
    await other.publish({ id });
    await eventually(() => expect(other.orders.runs(id)).toBe(1));
    await world.publish({ id });
    await eventually(async () => expect(await waiting()).toBe(1));
    return gate;
  }

  const effectsOf = async (id: string): Promise<string[]> =>
    (await world.effects()).filter((one) => one.startsWith(id));

  it('waits, and is a duplicate when the other commits', async () => {
    await world.quiet();
    const acked = world.settlements.acked;
    const gate = await bothAtWork('waits', ({ opened }) => opened);
    await holds(() => expect(world.settlements.acked).toBe(acked), 200);
    gate.open();
    await eventually(() => expect(world.settlements.acked).toBe(acked + 1));
    expect(world.orders.runs('waits')).toBe(0);
    expect(await effectsOf('waits')).toEqual(['waits-other-1']);
  });

  it('takes over when the other rolls back', async () => {
    const gate = await bothAtWork('rolls-back', async ({ opened }) => {
      await opened;
      throw new Error('fails, and is a duplicate when it comes again');
    });
    gate.open();
    await eventually(async () => expect(await world.keys()).toContain('rolls-back'));
    await other.quiet();
    expect(other.orders.runs('rolls-back')).toBe(1);
    expect(await effectsOf('rolls-back')).toEqual(['rolls-back-here']);
  });

  it('is delayed beyond the lock timeout, which is not an attempt', async () => {
    await world.quiet();
    const acked = world.settlements.acked;
    const gate = await bothAtWork('busy', async ({ opened }) => {
      await opened;
      throw new Error('fails for good');
    });
    let headers: Record<string, unknown> = {};
    world.orders.on('busy', async (_, { effects }, context) => {
      headers = { ...context.getMessage().properties.headers };
      await effects.insert({ id: 'busy-here', note: '' });
    });
    // The lock timeout is five seconds.
    await eventually(() => expect(world.settlements.acked).toBe(acked + 1), { timeoutMs: 10_000 });
    // The delayed copy is back, and waits again.
    await eventually(async () => expect(await waiting()).toBe(1));
    gate.open();
    await eventually(async () => expect(await effectsOf('busy')).toEqual(['busy-here']));
    expect(headers['x-error-name']).toBe('KeyBusyError');
    expect(headers['x-attempt']).toBe(0);
    expect((await world.broker.depth('commissions.dead')).ready).toBe(0);
    await other.quiet();
  });
});
