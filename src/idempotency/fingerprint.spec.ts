import { createHash } from 'node:crypto';
import {
  integer,
  listOf,
  oneOf,
  seeded,
  shuffled,
  text,
  type Random,
} from '../../test/support/random.js';
import { InvalidFingerprintError } from './errors.js';
import { canonicalJson, fingerprint, type FingerprintSource } from './fingerprint.js';

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };

const CHARACTERS = 'ab1",:[]{}\\\n\0 ü\ud83d';

function randomJson(random: Random, depth = 0): Json {
  switch (integer(random, 0, depth < 4 ? 6 : 4)) {
    case 0:
      return null;
    case 1:
      return random() < 0.5;
    case 2:
      return integer(random, -3, 3);
    case 3:
      return random() * 10 ** integer(random, -20, 20);
    case 4:
      return text(random, CHARACTERS, 3);
    case 5:
      return listOf(random, 3, () => randomJson(random, depth + 1));
    default:
      return Object.fromEntries(
        listOf(random, 4, () => [
          oneOf(random, ['a', 'b', '1', '__proto__', text(random, CHARACTERS, 2)]),
          randomJson(random, depth + 1),
        ]),
      );
  }
}

function reordered(random: Random, value: Json): Json {
  if (Array.isArray(value)) {
    return value.map((item) => reordered(random, item));
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const members = Object.entries(value).map(([name, item]) => [name, reordered(random, item)]);
  return Object.fromEntries(shuffled(random, members)) as Json;
}

describe('canonicalJson', () => {
  it.each<[unknown, string]>([
    [{ b: 1, a: { d: [2, 1], c: null } }, '{"a":{"c":null,"d":[2,1]},"b":1}'],
    [{ a: undefined, b: 1 }, '{"b":1}'],
    [[undefined, 1], '[null,1]'],
    [undefined, 'null'],
    [12n, '"12"'],
    [new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [JSON.parse('{"__proto__":{"a":1}}'), '{"__proto__":{"a":1}}'],
    [{ Z: 1, a: 2, é: 3, 10: 4, 9: 5 }, '{"10":4,"9":5,"Z":1,"a":2,"é":3}'],
  ])('writes %j as %s', (value, json) => {
    expect(canonicalJson(value)).toBe(json);
  });

  it('is JSON of the same value, whatever the order of the properties', () => {
    const random = seeded(1);
    for (let run = 0; run < 500; run++) {
      const value = randomJson(random);
      const json = canonicalJson(value);
      expect(canonicalJson(reordered(random, value))).toBe(json);
      // Read back it is the same value, so that no two values share a text.
      expect(JSON.stringify(JSON.parse(json))).toBe(JSON.stringify(sortedCopy(value)));
    }
  });

  it('takes 200 levels and refuses more', () => {
    expect(canonicalJson(nested(200))).toHaveLength(402);
    expect(() => canonicalJson(nested(201))).toThrow('nested more than 200 levels deep');
  });
});

/** What JSON itself makes of the value, with its properties in order. */
function sortedCopy(value: Json): Json {
  const sorted: unknown = JSON.parse(
    JSON.stringify(value, (_, item: Json) =>
      typeof item === 'object' && item !== null && !Array.isArray(item)
        ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
        : item,
    ),
  );
  return sorted as Json;
}

function nested(levels: number): unknown {
  let value: unknown = [];
  for (let level = 0; level < levels; level++) {
    value = [value];
  }
  return value;
}

describe('fingerprint', () => {
  const sale = { saleId: 'S', amountCents: 100, sentAt: 'now' };

  it('is the SHA-256 of the canonical payload', () => {
    const json = '{"amountCents":100,"saleId":"S","sentAt":"now"}';
    expect(fingerprint('c', undefined, sale)).toEqual(createHash('sha256').update(json).digest());
  });

  it('compares nothing when it is turned off', () => {
    expect(fingerprint('c', false, sale)).toBeNull();
  });

  it('compares what the function picks, and only that', () => {
    const source = ((s: typeof sale) => [s.saleId, s.amountCents]) as FingerprintSource;
    const first = fingerprint('c', source, sale);
    expect(fingerprint('c', source, { ...sale, sentAt: 'later' })).toEqual(first);
    expect(fingerprint('c', source, { ...sale, amountCents: 101 })).not.toEqual(first);
  });

  it.each<[string, FingerprintSource]>([
    [
      'throws',
      () => {
        throw new TypeError('no amount');
      },
    ],
    [
      'throws what has no text',
      () => {
        throw Object.create(null);
      },
    ],
    ['is async', async () => 'x'],
    ['is async and rejects', () => Promise.reject(new Error('late'))],
    ['changes the payload', (payload) => ((payload as typeof sale).sentAt = '')],
    ['returns what is nested too deeply', () => nested(300)],
  ])('refuses the message when its function %s', (_, source) => {
    expect(() => fingerprint('c', source, sale)).toThrow(InvalidFingerprintError);
    expect(sale.sentAt).toBe('now');
  });

  it('says that its function is async', () => {
    expect(() => fingerprint('c', async () => 'x', sale)).toThrow('is async');
  });
});
