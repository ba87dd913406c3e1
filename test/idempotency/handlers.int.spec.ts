import type { RmqContext } from '@nestjs/microservices';
import { EMPTY, NEVER, concat, defer, from, mergeMap, throwError, timeout } from 'rxjs';
import { eventually, useCleanup } from '../support/index.js';
import { startFixture, type Fixture } from './orders.fixture.js';

const cleanup = useCleanup();
let world: Fixture;

beforeAll(async () => {
  world = await startFixture(cleanup, { config: { retryDelaysMs: [10] } });
});

const fail = () => throwError(() => new Error('after its effects'));

const effectsOf = async (id: string): Promise<string[]> =>
  (await world.effects()).filter((one) => one.startsWith(id));

async function processed(id: string): Promise<void> {
  await eventually(async () => expect(await world.keys()).toContain(id));
}

type Emit = (insert: (id: string) => Promise<unknown>) => unknown;

it.each<[string, Emit, string[]]>([
  ['one value', (insert) => defer(() => insert('1')), ['1']],
  ['EMPTY', () => EMPTY, []],
  [
    'no value after its effect',
    (insert) => defer(() => insert('1')).pipe(mergeMap(() => EMPTY)),
    ['1'],
  ],
  ['many values', (insert) => from(['1', '2', '3']).pipe(mergeMap(insert)), ['1', '2', '3']],
  ['a promise of one', async (insert) => defer(() => insert('1')), ['1']],
])('subscribes to an observable inside of the transaction: %s', async (name, emit, inserted) => {
  const id = `observable ${name}`;
  world.orders.on(id, (_, { effects }, __, run) => {
    const insert = (part: string) => effects.insert({ id: `${id} ${run} ${part}`, note: '' });
    return run === 1
      ? concat(from([emit(insert)]).pipe(mergeMap((one) => from(one as never))), fail())
      : emit(insert);
  });
  await world.publish({ id });
  await processed(id);
  expect(await effectsOf(id)).toEqual(inserted.map((part) => `${id} 2 ${part}`));
});

it.each([
  ['ack', (context: RmqContext) => context.getChannelRef().ack(context.getMessage())],
  ['nack', (context: RmqContext) => context.getChannelRef().nack(context.getMessage())],
  ['close', (context: RmqContext) => context.getChannelRef().close()],
])('refuses a handler the channel, and settles its message itself: %s', async (method, touch) => {
  const id = `channel ${method}`;
  world.orders.on(id, async (_, { effects }, context) => {
    await effects.insert({ id, note: '' });
    await touch(context);
  });
  await world.publish({ id });
  expect((await world.deadLetter()).error).toContain(`channel.${method}()`);
  expect(await effectsOf(id)).toEqual([]);
  await world.publish({ id: `after ${method}` });
  await processed(`after ${method}`);
});

it('ends a handler whose observable never completes by its own timeout', async () => {
  world.orders.on('never', (_, { effects }, __, run) =>
    run === 1 ? NEVER.pipe(timeout(50)) : effects.insert({ id: 'never', note: '' }),
  );
  await world.publish({ id: 'never' });
  await processed('never');
  expect(world.orders.runs('never')).toBe(2);
});
