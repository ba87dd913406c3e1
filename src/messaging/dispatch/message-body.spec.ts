import { gzipSync } from 'node:zlib';
import { randomJson, type Json } from '../../../test/support/random-json.js';
import { integer, seeded } from '../../../test/support/random.js';
import { UnprocessableMessageError, type UnprocessableReason } from '../errors.js';
import { nestingDepth, readBytes, readJson } from './message-body.js';

const MEBIBYTE = 1024 * 1024;
const arrays = (levels: number): string => '['.repeat(levels) + ']'.repeat(levels);

describe('readBytes', () => {
  it.each([undefined, null, 7, '', 'identity', 'UTF-8'])(
    'gives the body itself when its encoding is %p',
    (encoding) => {
      const body = Buffer.from('{}');
      expect(readBytes(body, encoding)).toBe(body);
    },
  );

  it('decodes a body that names its encoding', () => {
    expect(readBytes(gzipSync('{"a":1}'), 'gzip').toString()).toBe('{"a":1}');
  });

  it('limits the size to 1 MiB, before and after decoding', () => {
    const largest = Buffer.alloc(MEBIBYTE);
    expect(readBytes(largest, undefined)).toBe(largest);
    expect(readBytes(gzipSync(largest), 'gzip')).toEqual(largest);
    const larger = Buffer.alloc(MEBIBYTE + 1);
    const tooLarge = expect.objectContaining({ reason: 'too-large' }) as Error;
    expect(() => readBytes(larger, undefined)).toThrow(tooLarge);
    expect(() => readBytes(gzipSync(larger), 'gzip')).toThrow(tooLarge);
    // Stored, not compressed: refused by what came, whatever it decodes to.
    const stored = gzipSync(largest, { level: 0 });
    expect(() => readBytes(stored, 'gzip')).toThrow(`the body has ${stored.length} bytes`);
  });
});

describe('readJson', () => {
  it.each(['null', '1', '"text"', '[]', '{}', ' {"a" : 1}\n', '"\\u0000"', '"[[[["'])(
    'reads %s',
    (json) => {
      expect(readJson(Buffer.from(json))).toEqual(JSON.parse(json));
    },
  );

  it.each<[string, UnprocessableReason, string | Buffer]>([
    ['an empty body', 'not-json', ''],
    ['plain text', 'not-json', 'secret text'],
    ['half of an object', 'not-json', '{"secret":'],
    ['a byte-order mark', 'not-json', '\ufeff{}'],
    ['gzip', 'not-json', gzipSync('{}')],
    ['UTF-16', 'not-json', Buffer.from('{"a":1}', 'utf16le')],
    ['Latin-1', 'not-json', Buffer.from('{"a":"é"}', 'latin1')],
    ['101 levels', 'too-deep', arrays(101)],
    ['100,000 levels', 'too-deep', arrays(100_000)],
    ['100,000 levels that are never closed', 'too-deep', '{"a":'.repeat(100_000)],
    ['a property __proto__', 'unsafe-properties', '{"__proto__":{"admin":true}}'],
    ['one further down', 'unsafe-properties', '{"a":[{"b":{"__proto__":1}}]}'],
    ['one that is escaped', 'unsafe-properties', '{"__pr\\u006fto__":{"admin":true}}'],
    ['one that is all escapes', 'unsafe-properties', '[{"\\u005f\\u005fproto\\u005F\\u005F":1}]'],
  ])('refuses %s as %s', (_, reason, body) => {
    const read = (): unknown => readJson(Buffer.from(body as string));
    expect(read).toThrow(UnprocessableMessageError);
    expect(read).toThrow(expect.objectContaining({ reason }));
    expect(read).not.toThrow(/secret/);
    expect(({} as { admin?: unknown }).admin).toBeUndefined();
  });

  it.each<[string, string]>([
    ['100 levels', arrays(100)],
    ['1 MiB', `"${'x'.repeat(MEBIBYTE - 2)}"`],
    ['__proto__ as a value', '{"name":"__proto__"}'],
    ['a name that only looks like it', '{"__proto":1,"a__proto__":2}'],
  ])('takes %s', (_, body) => {
    expect(readJson(Buffer.from(body))).toEqual(JSON.parse(body));
  });
});

describe('nestingDepth', () => {
  function depthOf(value: Json): number {
    return typeof value === 'object' && value !== null
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
