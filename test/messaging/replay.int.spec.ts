import { DeadLetters, PermanentError, type DeadLetter } from '../../src/messaging/index.js';
import { eventually, useCleanup } from '../support/index.js';
import { effects, place, settled, startOrders, type OrderService } from './orders.js';

const cleanup = useCleanup();
let service: OrderService;
let letters: DeadLetters;

beforeAll(async () => {
  service = await startOrders(cleanup);
  letters = service.app.get(DeadLetters);
});

afterEach(async () => {
  await service.broker.drainQueue('commissions.dead');
});

const refuse = (): never => {
  throw new PermanentError('no such product');
};
const fail = (): never => {
  throw new Error('the shop is closed');
};

/** Places orders that become dead letters, in this order. */
async function giveUp(orderIds: string[], act: () => never = refuse): Promise<void> {
  for (const orderId of orderIds) {
    service.plans.plan(orderId, act);
    await place(service.broker, { orderId });
    await eventually(async () => expect((await ids()).at(-1)).toBe(orderId));
  }
  await settled(service);
}

/** The orders in the dead letters, oldest first. */
async function ids(): Promise<string[]> {
  return (await letters.list()).map(orderOf);
}

const orderOf = ({ body }: DeadLetter): string =>
  (JSON.parse(body.toString()) as { orderId: string }).orderId;

/** Handlers succeed from now on. */
function mend(...orderIds: string[]): void {
  for (const orderId of orderIds) service.plans.plan(orderId, () => undefined);
}

const once = async (orderId: string): Promise<void> => {
  await eventually(async () =>
    expect((await effects(service.db)).filter((note) => note === orderId)).toEqual([orderId]),
  );
};

it('lists a dead letter with all that is known of it, the body byte for byte', async () => {
  service.plans.plan('L', refuse);
  const body = '{ "orderId" : "L", "café": "\\u00e9" }';
  await service.broker.publish('events', 'order.placed', body, {
    messageId: 'm-1',
    contentType: 'application/json',
    headers: { tenant: 'T' },
  });
  await eventually(async () => expect(await ids()).toEqual(['L']));
  const [letter] = await letters.list();
  expect(letter).toEqual({
    id: expect.stringMatching(/^[0-9a-f]{16}$/) as string,
    reason: 'permanent-error',
    errorName: 'PermanentError',
    errorMessage: 'no such product',
    attempts: 1,
    firstFailedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    lastFailedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
    consumer: 'commissions/order.placed',
    queue: 'commissions',
    exchange: 'events',
    routingKey: 'order.placed',
    messageId: 'm-1',
    contentType: 'application/json',
    contentEncoding: undefined,
    headers: expect.objectContaining({ tenant: 'T' }) as object,
    body: Buffer.from(body),
    size: Buffer.byteLength(body),
    history: [],
  });
});

it('finds every letter in its place after thirty looks, under the same id', async () => {
  await giveUp(['A1', 'A2', 'A3']);
  const first = await letters.list();
  for (let look = 0; look < 30; look++) {
    const seen = await letters.list();
    expect(seen.map(({ id }) => id)).toEqual(first.map(({ id }) => id));
  }
  expect(first.map(orderOf)).toEqual(['A1', 'A2', 'A3']);
});

it('counts by reason, and lists what a filter matches', async () => {
  const start = new Date();
  await giveUp(['B1', 'B2']);
  await giveUp(['B3'], fail);
  expect([...(await letters.countByReason())]).toEqual([
    ['permanent-error', 2],
    ['attempts-exhausted', 1],
  ]);
  const found = async (filter: Parameters<DeadLetters['list']>[0]): Promise<string[]> =>
    (await letters.list(filter)).map(orderOf);
  expect(await found({ reason: 'attempts-exhausted' })).toEqual(['B3']);
  expect(await found({ routingKey: 'order.*' })).toHaveLength(3);
  expect(await found({ routingKey: 'order' })).toEqual([]);
  expect(await found({ consumer: 'commissions/order.placed', failedSince: start })).toHaveLength(3);
  expect(await found({ failedUntil: start })).toEqual([]);
  expect((await letters.list({}, { limit: 2 })).map(orderOf)).toEqual(['B1', 'B2']);
});

it('replays one letter: processed once, no duplicate of its failed self, the others untouched', async () => {
  await giveUp(['C1', 'C2', 'C3']);
  mend('C1', 'C2', 'C3');
  const [, second] = await letters.list();
  expect(await letters.replay({ id: second!.id })).toEqual({
    matched: 1,
    done: 1,
    failed: [],
    failedCount: 0,
    aborted: false,
  });
  await once('C2');
  expect(await ids()).toEqual(['C1', 'C3']);
});

it('replays some and then all, and has one effect of each', async () => {
  await giveUp(['D1', 'D2', 'D3', 'D4']);
  mend('D1', 'D2', 'D3', 'D4');
  expect(await letters.replay({ reason: 'permanent-error' }, { limit: 2 })).toMatchObject({
    done: 2,
  });
  await once('D2');
  expect(await ids()).toEqual(['D3', 'D4']);
  expect(await letters.replay({ all: true })).toMatchObject({ matched: 2, done: 2 });
  await settled(service);
  for (const orderId of ['D1', 'D2', 'D3', 'D4']) await once(orderId);
  expect(await ids()).toEqual([]);
});

it('gives a replayed letter all its attempts again, and keeps its history over two rounds', async () => {
  await giveUp(['E'], fail);
  expect(service.plans.runs('E')).toBe(4);
  const [first] = await letters.list();
  for (const round of [1, 2]) {
    await letters.replay({ all: true });
    await eventually(async () => expect((await letters.list())[0]?.history).toHaveLength(round));
    expect(service.plans.runs('E')).toBe(4 + 4 * round);
  }
  const [last] = await letters.list();
  expect(last).toMatchObject({ attempts: 4, exchange: 'events', routingKey: 'order.placed' });
  expect(last!.firstFailedAt! > first!.lastFailedAt!).toBe(true);
  expect(last!.history[0]).toEqual({
    reason: 'attempts-exhausted',
    errorName: 'Error',
    errorMessage: 'the shop is closed',
    attempts: 4,
    consumer: 'commissions/order.placed',
    firstFailedAt: first!.firstFailedAt,
    lastFailedAt: first!.lastFailedAt,
    replayedAt: expect.stringMatching(/^\d{4}-.*Z$/) as string,
  });
  await settled(service);
});

it('discards what was selected, and nothing else', async () => {
  await giveUp(['F1', 'F2', 'F3']);
  const [first, , third] = await letters.list();
  expect(await letters.discard({ id: [first!.id, third!.id] })).toMatchObject({ done: 2 });
  expect(await ids()).toEqual(['F2']);
  expect(service.plans.runs('F1')).toBe(1);
});

it('changes nothing in a dry run, or when nothing is selected', async () => {
  await giveUp(['G1', 'G2']);
  mend('G1', 'G2');
  expect(await letters.replay({ all: true }, { dryRun: true })).toMatchObject({
    matched: 2,
    done: 0,
  });
  expect(await letters.discard({ all: true }, { dryRun: true })).toMatchObject({ matched: 2 });
  await expect((async () => letters.replay({}))()).rejects.toThrow('{ all: true }');
  await expect((async () => letters.discard({ reason: undefined }))()).rejects.toThrow('Say which');
  expect(await ids()).toEqual(['G1', 'G2']);
  expect(service.plans.runs('G1')).toBe(1);
});

it('stops at an abort between two letters, and tells its progress', async () => {
  await giveUp(['H1', 'H2', 'H3']);
  const stop = new AbortController();
  const result = await letters.discard(
    { all: true },
    {
      signal: stop.signal,
      onProgress: ({ seen, total }) => {
        expect(total).toBe(3);
        if (seen === 2) stop.abort();
      },
    },
  );
  expect(result).toMatchObject({ done: 2, aborted: true });
  expect(await ids()).toEqual(['H3']);
});
