import { consumeMessage } from '../../test/support/consume-message.js';
import { integer, listOf, seeded, text, type Random } from '../../test/support/random.js';
import { UnprocessableMessageError, type UnprocessableReason } from './errors.js';
import { nestingDepth, parseMessage } from './incoming-message.js';

const raw = (body: string | Buffer) => consumeMessage(Buffer.from(body as string));
const arrays = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

describe('parseMessage', () => {
  it('reads a bare body, routed by its routing key, then by its type', () => {
    const body = { saleId: 'S', data: 1 };
    expect(parseMessage(consumeMessage(body, { type: 'Sale' }))).toEqual({
      patterns: ['sale.completed', 'Sale'],
      data: body,
      requestId: undefined,
    });
  });

  it('reads an event in the envelope of Nest', () => {
    const message = consumeMessage({ pattern: 'sale.completed', data: { saleId: 'S' } }, {}, 'q');
    expect(parseMessage(message)).toEqual({
      patterns: ['sale.completed'],
      data: { saleId: 'S' },
      requestId: undefined,
    });
  });

  it('reads a request in the envelope of Nest', () => {
    const message = consumeMessage({ pattern: { cmd: 'sum' }, data: [1, 2], id: 'r-1' });
    expect(parseMessage(message)).toEqual({
      patterns: [{ cmd: 'sum' }],
      data: [1, 2],
      requestId: 'r-1',
    });
  });

  it.each<[string, object]>([
    ['has other fields', { pattern: 'x', data: 1, colour: 'red' }],
    ['has a pattern that is none', { pattern: null, data: 1 }],
    ['has a boolean pattern', { pattern: true, data: 1 }],
    ['has an id and data, and no pattern', { id: '1', data: 2 }],
  ])('takes a body that %s for a bare one', (_, body) => {
    expect(parseMessage(consumeMessage(body))).toMatchObject({
      data: body,
      requestId: undefined,
    });
  });

  it('reads a CloudEvent, whose type is its last resort for routing', () => {
    const event = { specversion: '1.0', type: 'shop.sale', id: 'e', source: '/s', data: { a: 1 } };
    expect(parseMessage(consumeMessage(event))).toEqual({
      patterns: ['sale.completed', undefined, 'shop.sale'],
      data: { a: 1 },
      requestId: undefined,
    });
  });

  it('keeps the original routing key of a copy that came through a retry queue', () => {
    const headers = { 'x-original-routing-key': 'sale.completed' };
    const copy = consumeMessage({ a: 1 }, { headers }, 'commissions');
    expect(parseMessage(copy).patterns[0]).toBe('sale.completed');
  });

  it('reads a message without headers', () => {
    expect(parseMessage(consumeMessage([], { headers: undefined })).data).toEqual([]);
  });

  it.each(['null', '1', '"text"', '[]', '{}', ' {"a" : 1}\n', '"\\u0000"', '"[[[["'])(
    'reads the JSON %s',
    (json) => {
      expect(parseMessage(raw(json)).data).toEqual(JSON.parse(json));
    },
  );

  it.each<[string, UnprocessableReason, string | Buffer]>([
    ['an empty body', 'not-json', ''],
    ['plain text', 'not-json', 'secret text'],
    ['half of an object', 'not-json', '{"secret":'],
    ['a byte-order mark', 'not-json', '\ufeff{}'],
    ['gzip', 'not-json', Buffer.from('1f8b08000000000000', 'hex')],
    ['UTF-16', 'not-json', Buffer.from('{"a":1}', 'utf16le')],
    ['Latin-1', 'not-json', Buffer.from('{"a":"é"}', 'latin1')],
    ['a body over 1 MiB', 'too-large', `"${'x'.repeat(1024 * 1024)}"`],
    ['101 levels', 'too-deep', arrays(101)],
    ['100,000 levels', 'too-deep', arrays(100_000)],
    ['100,000 levels that are never closed', 'too-deep', '{"a":'.repeat(100_000)],
    ['a property __proto__', 'unsafe-properties', '{"__proto__":{"admin":true}}'],
    ['one further down', 'unsafe-properties', '{"a":[{"b":{"__proto__":1}}]}'],
    ['one that is escaped', 'unsafe-properties', '{"__pr\\u006fto__":{"admin":true}}'],
    ['one that is all escapes', 'unsafe-properties', '[{"\\u005f\\u005fproto\\u005F\\u005F":1}]'],
  ])('refuses %s as %s', (_, reason, body) => {
    const parse = (): unknown => parseMessage(raw(body));
    expect(parse).toThrow(UnprocessableMessageError);
    expect(parse).toThrow(expect.objectContaining({ reason }));
    expect(parse).not.toThrow(/secret/);
    expect(({} as { admin?: unknown }).admin).toBeUndefined();
  });

  it.each<[string, string]>([
    ['100 levels', arrays(100)],
    ['exactly 1 MiB', `"${'x'.repeat(1024 * 1024 - 2)}"`],
    ['__proto__ as a value', '{"name":"__proto__"}'],
    ['a name that only looks like it', '{"__proto":1,"a__proto__":2}'],
  ])('takes %s', (_, body) => {
    expect(parseMessage(raw(body)).data).toEqual(JSON.parse(body));
  });
});

describe('nestingDepth', () => {
  type Json = string | number | Json[] | { [name: string]: Json };

  function randomJson(random: Random, depth = 0): Json {
    switch (integer(random, 0, depth < 6 ? 4 : 1)) {
      case 0:
        return text(random, '[]{}"\\:, aé😀', 5);
      case 1:
        return integer(random, -9, 9);
      case 2:
        return Object.fromEntries(
          listOf(random, 3, () => [text(random, '[]{}"\\', 3), randomJson(random, depth + 1)]),
        );
      default:
        return listOf(random, 3, () => randomJson(random, depth + 1));
    }
  }

  function depthOf(value: Json): number {
    return typeof value === 'object'
      ? 1 + Math.max(0, ...Object.values(value).map((item) => depthOf(item)))
      : 0;
  }

  it('is what a recursive count gives, whatever brackets and quotes stand in texts', () => {
    const random = seeded(42);
    const depths = new Set<number>();
    for (let run = 0; run < 1_000; run++) {
      const value = randomJson(random);
      const json = JSON.stringify(value, undefined, integer(random, 0, 2));
      expect(`${nestingDepth(Buffer.from(json))} ${json}`).toBe(`${depthOf(value)} ${json}`);
      depths.add(depthOf(value));
    }
    expect(depths.size).toBeGreaterThan(5);
  });
});
