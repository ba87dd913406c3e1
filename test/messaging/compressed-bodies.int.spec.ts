import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { eventually, useCleanup } from '../support/index.js';
import { deadLetter, effects, place, settled, startOrders, type OrderService } from './orders.js';

const MEGABYTE = 1024 * 1024;
const order = (orderId: string): string => JSON.stringify({ orderId, note: 'é'.repeat(500) });

const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  // One at a time: a message that kept its place would hold up every other.
  service = await startOrders(cleanup, { config: { concurrency: 1 } });
});

const publish = (body: Buffer, contentEncoding?: string): Promise<void> =>
  service.broker.publish('events', 'order.placed', body, { contentEncoding });

const effectsOf = async (orderId: string): Promise<string[]> =>
  (await effects(service.db)).filter((note) => note === orderId);

it.each<[string, string, (body: string) => Buffer]>([
  ['gzip', 'gzip', gzipSync],
  ['gzip in capitals', 'GZIP', gzipSync],
  ['gzip of UTF-8', 'gzip, UTF-8', gzipSync],
  ['deflate', 'deflate', deflateSync],
  ['deflate without its wrapper', 'deflate', deflateRawSync],
  ['no compression', 'identity', (body) => Buffer.from(body)],
  ['a character set', 'UTF-8', (body) => Buffer.from(body)],
])(
  'processes a message with %s once; resent as it is, or plain, it is a duplicate',
  async (id, encoding, encode) => {
    const { acked } = service.settlements;
    await publish(encode(order(id)), encoding);
    await publish(encode(order(id)), encoding);
    await publish(Buffer.from(order(id)));
    await settled(service);
    expect(service.settlements.acked).toBe(acked + 3);
    expect(await effectsOf(id)).toEqual([id]);
    expect((await service.broker.depth('commissions.dead')).ready).toBe(0);
  },
);

it('keeps a compressed message as it came through its retries, and into the dead letters', async () => {
  service.plans.plan('RETRIED', () => {
    throw new Error('fails');
  });
  const body = gzipSync(order('RETRIED'));
  await publish(body, 'gzip');
  const letter = await deadLetter(service.broker);
  expect(service.plans.runs('RETRIED')).toBe(4);
  expect(letter.body.equals(body)).toBe(true);
  expect(letter.properties).toMatchObject({ contentEncoding: 'gzip' });
  expect(letter.headers).toMatchObject({ 'x-attempt': 4, 'x-dead-reason': 'attempts-exhausted' });
});

it('processes a compressed message once when it succeeds at a later attempt', async () => {
  service.plans.plan('LATER', (run) => {
    if (run < 3) throw new Error('fails');
  });
  await publish(gzipSync(order('LATER')), 'gzip');
  await eventually(async () => expect(await effectsOf('LATER')).toEqual(['LATER']));
  await settled(service);
  expect(service.plans.runs('LATER')).toBe(3);
  expect(await effectsOf('LATER')).toEqual(['LATER']);
});

it.each<[string, string, string | undefined, Buffer]>([
  ['gzip that says nothing of it', 'not-json', undefined, gzipSync(order('NAMELESS'))],
  ['gzip that says UTF-8', 'not-json', 'utf-8', gzipSync(order('CHARSET'))],
  ['no gzip that says so', 'not-decodable', 'gzip', Buffer.from(order('PLAIN'))],
  ['gzip whose end is missing', 'not-decodable', 'gzip', gzipSync(order('CUT')).subarray(0, -9)],
  ['two encodings', 'unsupported-encoding', 'gzip, deflate', deflateSync(gzipSync(order('TWO')))],
  ['Brotli', 'unsupported-encoding', 'br', Buffer.from(order('BR'))],
  ['Zstandard', 'unsupported-encoding', 'zstd', Buffer.from(order('ZSTD'))],
  ['gzip of text', 'not-json', 'gzip', gzipSync('plain text')],
  ['gzip of 101 levels', 'too-deep', 'gzip', gzipSync('['.repeat(101))],
  ['gzip of __proto__', 'unsafe-properties', 'gzip', gzipSync('{"__proto__":{}}')],
])(
  'dead-letters %s the first time, as it came, and others go on',
  async (what, reason, encoding, body) => {
    await publish(body, encoding);
    await place(service.broker, { orderId: what });
    const letter = await deadLetter(service.broker);
    expect(letter.body.equals(body)).toBe(true);
    expect(letter.properties.contentEncoding).toBe(encoding);
    expect(letter.headers).toMatchObject({ 'x-dead-reason': reason, 'x-attempt': 1 });
    await settled(service);
    expect(await effectsOf(what)).toEqual([what]);
  },
);

it('dead-letters a body of 1 MB that decodes to 900 MB, without ever holding these', async () => {
  const bomb = Buffer.concat(Array<Buffer>(900).fill(gzipSync(Buffer.alloc(MEGABYTE))));
  expect(bomb.length).toBeLessThan(MEGABYTE);
  const { maxRSS } = process.resourceUsage();
  await publish(bomb, 'gzip');
  await place(service.broker, { orderId: 'beside the bomb' });
  const letter = await deadLetter(service.broker);
  expect(letter.body.equals(bomb)).toBe(true);
  expect(letter.headers).toMatchObject({ 'x-dead-reason': 'too-large', 'x-attempt': 1 });
  await settled(service);
  expect(await effectsOf('beside the bomb')).toHaveLength(1);
  // In kB, and the most there was: the service runs in this process.
  expect(process.resourceUsage().maxRSS - maxRSS).toBeLessThan(200 * 1024);
});
