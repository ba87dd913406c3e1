import { spawn } from 'node:child_process';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import {
  DeadLetters,
  DeadLettersBusyError,
  DeadLettersInterruptedError,
  NoDeadLetterQueueError,
  PermanentError,
} from '../../src/messaging/index.js';
import { atPoint, createTcpProxy, eventually, kill, stall, useCleanup } from '../support/index.js';
import { effects, gate, place, settled, startOrders, type OrderService } from './orders.js';

const cleanup = useCleanup();
let service: OrderService;
let letters: DeadLetters;

beforeAll(async () => {
  service = await startOrders(cleanup);
  letters = service.app.get(DeadLetters);
});

const dead = async (): Promise<number> => (await service.broker.depth('commissions.dead')).ready;

/** Orders that are dead letters, and whose handler succeeds from now on. */
async function giveUp(prefix: string, count: number): Promise<string[]> {
  const orderIds = Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  for (const orderId of orderIds) {
    service.plans.plan(orderId, (run) => {
      if (run === 1) throw new PermanentError('not yet');
    });
    await place(service.broker, { orderId });
  }
  await eventually(async () => expect(await dead()).toBe(count));
  await settled(service);
  return orderIds.toSorted();
}

async function expectOneEffectEach(prefix: string, orderIds: string[]): Promise<void> {
  await settled(service);
  const notes = (await effects(service.db)).filter((note) => note.startsWith(prefix));
  expect(notes).toEqual(orderIds);
  expect(await dead()).toBe(0);
}

it.each([
  ['before a copy is sent', 'before-publish'],
  ['when a copy is stored and not yet confirmed', 'published'],
  ['between the confirmed copy and the removal', 'before-ack'],
] as const)('loses nothing and has one effect of each when it is killed %s', async (_, point) => {
  const orderIds = await giveUp(`K-${point}-`, 10);
  const proxy = cleanup.use(await createTcpProxy(service.broker.url));
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('replay-process.mjs', import.meta.url))],
    { env: { ...process.env, RABBITMQ_URL: proxy.url }, stdio: 'ignore' },
  );
  const ended = once(child, 'exit');
  proxy.intercept(atPoint(point, kill({ signal: (signal) => child.kill(signal) })));
  expect(await ended).toEqual([null, 'SIGKILL']);
  await eventually(async () => expect(await dead()).toBe(10));
  expect(await letters.replay({ all: true })).toMatchObject({ matched: 10, done: 10 });
  await expectOneEffectEach(`K-${point}-`, orderIds);
});

it('says how many were done when the connection is cut, and goes on when it is run again', async () => {
  const orderIds = await giveUp('C', 10);
  const error: unknown = await letters
    .replay(
      { all: true },
      {
        onProgress: ({ seen }) => {
          if (seen === 5) service.rabbit.cut();
        },
      },
    )
    .catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(DeadLettersInterruptedError);
  await settled(service);
  await letters.replay({ all: true });
  await expectOneEffectEach('C', orderIds);
});

it('tells a second one that somebody is at it, and lets it in afterwards', async () => {
  const orderIds = await giveUp('T', 3);
  const { opened, open } = gate();
  const copies = service.rabbit.intercept(atPoint('before-publish', stall(opened)));
  const first = letters.replay({ all: true });
  await eventually(async () => expect(await dead()).toBe(0));
  await expect(letters.list()).rejects.toThrow(DeadLettersBusyError);
  await expect(letters.discard({ all: true })).rejects.toThrow('in use by another command');
  copies();
  open();
  expect(await first).toMatchObject({ done: 3 });
  expect(await letters.list()).toEqual([]);
  await expectOneEffectEach('T', orderIds);
});

it('does not share the letters with a consumer of their queue', async () => {
  await service.broker.withChannel(async (channel) => {
    await channel.consume('commissions.dead', () => undefined);
    await expect(letters.list()).rejects.toThrow('in use by a consumer of its own');
  });
  expect(await letters.list()).toEqual([]);
});

it('leaves letters that arrive while it is at work', async () => {
  await giveUp('M', 3);
  const late: Promise<void>[] = [];
  const result = await letters.discard(
    { all: true },
    {
      onProgress: ({ seen }) => {
        const headers = { 'x-dead-reason': 'late' };
        if (seen === 1) late.push(service.broker.sendToQueue('commissions.dead', 'L', { headers }));
      },
    },
  );
  await Promise.all(late);
  expect(result).toMatchObject({ matched: 3, done: 3 });
  expect(await letters.discard({ reason: 'late' })).toMatchObject({ done: 1 });
});

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

it('goes over 5,000 letters without holding them, and keeps the order of those it leaves', async () => {
  const body = Buffer.alloc(40_000);
  const send = (index: number): Promise<void> =>
    service.broker.sendToQueue('commissions.dead', body, {
      messageId: String(index),
      headers: { 'x-dead-reason': index % 2 === 0 ? 'even' : 'odd' },
    });
  for (let from = 0; from < 5_000; from += 500) {
    await Promise.all(Array.from({ length: 500 }, (_, index) => send(from + index)));
  }
  let most = 0;
  const onProgress = ({ seen }: { seen: number }): void => {
    if (seen % 250 !== 0) return;
    // What is held counts, not what waits to be collected.
    collectGarbage();
    most = Math.max(most, process.memoryUsage().arrayBuffers);
  };
  expect(await letters.countByReason()).toEqual(
    new Map([
      ['even', 2_500],
      ['odd', 2_500],
    ]),
  );
  expect(await letters.discard({ reason: 'even' }, { onProgress })).toMatchObject({ done: 2_500 });
  expect(most).toBeLessThan(100_000_000);
  expect(await dead()).toBe(2_500);
  const left = await letters.list({}, { limit: 2_500 });
  expect(left.map(({ messageId }) => Number(messageId))).toEqual(
    Array.from({ length: 2_500 }, (_, index) => index * 2 + 1),
  );
  expect(await letters.discard({ all: true })).toMatchObject({ done: 2_500 });
  expect(await dead()).toBe(0);
});

it('says that there is no queue of dead letters', async () => {
  await service.broker.deleteQueue('commissions.dead');
  await expect(letters.list()).rejects.toThrow(NoDeadLetterQueueError);
});
