import { gzipSync } from 'node:zlib';
import { useCleanup } from '../support/index.js';
import { server } from '../support/servers.js';
import { deadLetter, effects, place, settled, startOrders, type OrderService } from './orders.js';

const MEGABYTE = 1024 * 1024;
const order = (orderId: string): string => JSON.stringify({ orderId });

const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  // One at a time: a message that kept its place would hold up every other.
  service = await startOrders(cleanup, { config: { concurrency: 1 } });
});

const deep = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

it.each<[string, string | Buffer, string]>([
  ['an empty body', '', 'not-json'],
  ['a byte-order mark', `\uFEFF${order('BOM')}`, 'not-json'],
  ['gzip that says nothing of it', gzipSync(order('GZIP')), 'not-json'],
  ['half a UTF-8 character', Buffer.from([0x22, 0xc3, 0x22]), 'not-json'],
  ['UTF-16', Buffer.from(order('UTF16'), 'utf16le'), 'not-json'],
  ['100,000 levels of arrays', deep(100_000), 'too-deep'],
  ['100,000 levels of objects', '{"a":'.repeat(100_000), 'too-deep'],
  ['101 levels', `{"orderId":"DEEP","more":${deep(100)}}`, 'too-deep'],
  ['__proto__', '{"orderId":"P1","__proto__":{"polluted":true}}', 'unsafe-properties'],
  [
    '__proto__ in another spelling',
    '{"orderId":"P2","a":[{"\\u005f_proto\\u005F_":{"polluted":true}}]}',
    'unsafe-properties',
  ],
  ['null', 'null', 'invalid-key'],
  ['a number', '1e999', 'invalid-key'],
  ['a list', '[{"orderId":"L"}]', 'invalid-key'],
])('dead-letters %s the first time, as it came, and others go on', async (what, body, reason) => {
  await service.broker.publish('events', 'order.placed', body);
  await place(service.broker, { orderId: what });
  const letter = await deadLetter(service.broker);
  expect(letter.body.equals(Buffer.from(body))).toBe(true);
  expect(letter.headers).toMatchObject({ 'x-dead-reason': reason, 'x-attempt': 1 });
  await settled(service);
  expect(await effects(service.db)).toContain(what);
  expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
});

it('dead-letters the largest body that the broker takes, 50 MB or less, as it came', async () => {
  // RabbitMQ 4 takes 16 MB by itself, 3.x took 128.
  const sent = await publishLargest([50, 15]);
  await place(service.broker, { orderId: 'beside the largest' });
  const letter = await deadLetter(service.broker);
  expect(letter.body.equals(sent)).toBe(true);
  expect(letter.headers).toMatchObject({ 'x-dead-reason': 'too-large', 'x-attempt': 1 });
  await settled(service);
  expect(await effects(service.db)).toContain('beside the largest');
});

async function publishLargest([megabytes, ...smaller]: number[]): Promise<Buffer> {
  const text = 'x'.repeat(megabytes! * MEGABYTE);
  const body = Buffer.from(JSON.stringify({ orderId: 'BIG', text }));
  try {
    await service.broker.publish('events', 'order.placed', body);
    return body;
  } catch (error) {
    if (smaller.length === 0 || !/max size/.test(String(error))) {
      throw error;
    }
    return publishLargest(smaller);
  }
}

it('reads 100 levels, text that looks like nesting, and a key that looks unsafe and is not', async () => {
  const bodies = [
    `{"orderId":"ok-1","more":${deep(99)}}`,
    JSON.stringify({ orderId: 'ok-2', text: '{"['.repeat(500) }),
    JSON.stringify({ orderId: 'ok-3', note: '__proto__', constructor: { prototype: 1 } }),
  ];
  for (const body of bodies) await service.broker.publish('events', 'order.placed', body);
  await settled(service);
  expect(await effects(service.db)).toEqual(expect.arrayContaining(['ok-1', 'ok-2', 'ok-3']));
});

it('never writes a body that it refuses, or a payload, into its log', async () => {
  await service.broker.publish('events', 'order.placed', 'iban DE00-SECRET');
  await deadLetter(service.broker);
  await service.broker.publish('events', 'order.placed', '{"orderId":"","iban":"DE00-SECRET"}');
  await deadLetter(service.broker);
  service.plans.plan('LOGGED', () => {
    throw new Error('fails');
  });
  await place(service.broker, { orderId: 'LOGGED', iban: 'DE00-SECRET' });
  await deadLetter(service.broker);
  expect(service.app.log()).toContain('attempts-exhausted');
  expect(service.app.log()).not.toContain('DE00-SECRET');
});

it.each<[string, Record<string, unknown>]>([
  ['many headers', { text: 'x'.repeat(20_000) }],
  ['more headers than can be copied', { text: 'x'.repeat(65_000) }],
  ['a header too coarse for a fraction', { rate: { '!': 'double', value: 2 ** 51 + 0.5 } }],
])('dead-letters a message that fails and has %s, and others go on', async (what, headers) => {
  await service.broker.publish('events', 'order.placed', '{}', { headers });
  await expectPassedOver(what);
});

it('dead-letters a message that fails and has more headers than the client can write', async () => {
  const properties = { headers: { text: 'x'.repeat(100_000) } };
  await publishByManagement(service.broker.vhost, 'order.placed', '{}', properties);
  await expectPassedOver('headers by another client');
});

async function expectPassedOver(next: string): Promise<void> {
  await place(service.broker, { orderId: next });
  const letter = await deadLetter(service.broker);
  expect(letter.body.toString()).toBe('{}');
  await settled(service);
  expect(await effects(service.db)).toContain(next);
}

/** Through the broker's own client, which writes what amqplib cannot. */
async function publishByManagement(
  vhost: string,
  routingKey: string,
  payload: string,
  properties: object,
): Promise<void> {
  const { origin, username, password } = new URL(server('rabbitmqManagementUrl'));
  const credentials = Buffer.from(`${username}:${password}`).toString('base64');
  const response = await fetch(`${origin}/api/exchanges/${vhost}/events/publish`, {
    method: 'POST',
    headers: { authorization: `Basic ${credentials}` },
    body: JSON.stringify({
      routing_key: routingKey,
      payload,
      payload_encoding: 'string',
      properties,
    }),
  });
  expect(await response.json()).toEqual({ routed: true });
}
