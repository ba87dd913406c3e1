import { setImmediate as endOfTurn } from 'node:timers/promises';
import { listOf, seeded, text } from '../../test/support/random.js';
import { InvalidKeyError } from './errors.js';
import { businessKey, type KeySource } from './key.js';

const keyOf = (value: unknown): string => businessKey('shop/sale', () => value as string, {});

describe('businessKey', () => {
  it.each([
    ['a text', 'S-1001', 'S-1001'],
    ['a text with spaces around it, which are part of it', ' S-1 ', ' S-1 '],
    ['a text beyond ASCII', 'Müller-😀', 'Müller-😀'],
    ['zero', 0, '0'],
    ['a negative number', -7, '-7'],
    ['the largest safe integer', Number.MAX_SAFE_INTEGER, '9007199254740991'],
    ['a bigint past it', 9_007_199_254_740_993n, '9007199254740993'],
    ['a composite', ['T-1', 42, 7n], '["T-1","42","7"]'],
    ['a composite of one', ['a'], '["a"]'],
    ['512 bytes', 'ä'.repeat(256), 'ä'.repeat(256)],
  ])('takes %s', (_, value, key) => {
    expect(keyOf(value)).toBe(key);
  });

  it('takes 1 and "1" for the same key, alone and in a composite', () => {
    expect(keyOf(1)).toBe(keyOf('1'));
    expect(keyOf([1, 'x'])).toBe(keyOf(['1', 'x']));
  });

  it.each([
    ['undefined', undefined, 'the value is missing'],
    ['null', null, 'the value is null'],
    ['an empty text', '', 'the text is empty or blank'],
    ['a blank text', ' \t\n\u00a0', 'the text is empty or blank'],
    ['NaN', Number.NaN, 'the number NaN is not a safe integer'],
    ['infinity', Number.POSITIVE_INFINITY, 'the number Infinity is not a safe integer'],
    ['a fraction', 1.5, 'the number 1.5 is not a safe integer'],
    [
      'a number past 2^53',
      2 ** 53,
      'the number 9007199254740992 is not a safe integer; past 2^53 send it as a string',
    ],
    ['an object', { id: 1 }, 'the value is an object; name the field in it'],
    ['a boolean', true, 'the value is a boolean'],
    ['a function', () => 'x', 'the value is a function'],
    ['a symbol', Symbol('x'), 'the value is a symbol'],
    ['a NUL character', 'a\0b', 'the text holds a NUL character'],
    ['a lone high surrogate', 'a\ud800', 'the text holds half of a surrogate pair'],
    ['a lone low surrogate', '\udc00a', 'the text holds half of a surrogate pair'],
    ['513 bytes', 'ä'.repeat(256) + 'a', 'it has 513 bytes, at most 512 are allowed'],
    ['an empty list', [], 'the list of its parts is empty'],
    ['a list with a hole', Array<string>(2), 'the value is missing'],
    ['a list with a list', [['a']], 'the value is an object; name the field in it'],
    ['a list with a blank part', ['a', ' '], 'the text is empty or blank'],
    ['a promise', Promise.resolve('x'), 'the key function failed: TypeError: it is async'],
  ])('refuses %s', (_, value, fault) => {
    expect(() => keyOf(value)).toThrow(InvalidKeyError);
    expect(() => keyOf(value)).toThrow(`shop/sale: no business key: ${fault}`);
  });

  it('refuses an async key function whose promise rejects, and leaves no rejection behind', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): unknown => unhandled.push(error);
    process.on('unhandledRejection', note);
    const source = (() => Promise.reject(new Error('late'))) as unknown as KeySource;

    expect(() => businessKey('c', source, {})).toThrow('it is async');
    // Node reports a rejection when the turn of the event loop in which it came has ended.
    await endOfTurn();

    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });

  it('says what the key function threw, and keeps it as the cause', () => {
    const cause = new TypeError('no sale');
    const source = (): string => {
      throw cause;
    };
    expect(() => businessKey('c', source, {})).toThrow(
      expect.objectContaining({
        name: 'InvalidKeyError',
        reason: 'invalid-key',
        message: 'c: no business key: the key function failed: TypeError: no sale.',
        cause,
      }),
    );
  });

  it('refuses the message when the key function throws what has no text', () => {
    const source = (): string => {
      throw Object.create(null);
    };
    expect(() => businessKey('c', source, {})).toThrow(InvalidKeyError);
  });

  it('refuses a key function that changes the payload, which stays as it was', () => {
    const payload = { lines: [{ id: 'b' }, { id: 'a' }] };
    const source: KeySource<typeof payload> = ({ lines }) =>
      lines.sort((a, b) => a.id.localeCompare(b.id))[0]!.id;

    expect(() => businessKey('c', source as KeySource, payload)).toThrow(InvalidKeyError);
    expect(payload).toEqual({ lines: [{ id: 'b' }, { id: 'a' }] });
  });

  it('takes a list in the payload as a composite', () => {
    const source = ((payload: { ids: string[] }) => payload.ids) as KeySource;
    expect(businessKey('c', source, { ids: ['a', 'b'] })).toBe('["a","b"]');
  });
});

describe('businessKey by path', () => {
  const payload = { tenantId: 'T', order: { id: 7, lines: [{ sku: 'x' }] }, 'a.b': 'dotted' };

  it.each<[KeySource, string]>([
    ['tenantId', 'T'],
    ['order.id', '7'],
    ['order.lines.0.sku', 'x'],
    [['tenantId', 'order.id'], '["T","7"]'],
    [['tenantId'], '["T"]'],
  ])('reads %j', (source, key) => {
    expect(businessKey('c', source, payload)).toBe(key);
  });

  it.each<[string, unknown]>([
    ['order.missing', payload],
    ['order.id.deeper', payload],
    ['constructor.name', payload],
    ['__proto__.x', payload],
    ['toString', payload],
    ['length', 'a payload that is a text'],
    ['id', null],
    ['id', undefined],
  ])('finds nothing at %s outside own properties', (path, value) => {
    expect(() => businessKey('c', path, value)).toThrow('the value is missing');
  });

  it('refuses a composite when one of its paths is missing', () => {
    expect(() => businessKey('c', ['tenantId', 'nope'], payload)).toThrow('the value is missing');
  });
});

it('gives different composite keys to different lists of texts', () => {
  const random = seeded(20260503);
  const seen = new Map<string, string[]>();
  for (let run = 0; run < 3_000; run++) {
    const parts = ['x', ...listOf(random, 3, () => `${text(random, 'a|,"\\[] 1', 4)}.`)];
    const key = keyOf(parts);
    expect(seen.get(key) ?? parts).toEqual(parts);
    seen.set(key, parts);
  }
  expect(seen.size).toBeGreaterThan(1_000);
});
