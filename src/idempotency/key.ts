import { InvalidKeyError } from './errors.js';
import { pick, textOf } from './payload-function.js';

/** PostgreSQL indexes at most about 2,700 bytes; a business key is far shorter. */
const MAX_KEY_BYTES = 512;

/** A text, a bigint, or a safe integer. `1` and `'1'` are the same key. */
export type KeyPart = string | number | bigint;

/**
 * Where the business key is: a function of the payload, the dotted path of one field, or the paths of
 * several, which together are the key.
 *
 * @example (sale) => sale.saleId
 * @example 'sale.id'
 * @example ['tenantId', 'order.id']
 */
export type KeySource<Payload = unknown> =
  ((payload: Payload) => KeyPart | readonly KeyPart[]) | string | readonly string[];

/**
 * The text under which a message's intent is stored. A composite key becomes a JSON array, so that
 * `['a|b', 'c']` and `['a', 'b|c']` differ.
 *
 * @throws InvalidKeyError
 */
export function businessKey(consumer: string, source: KeySource, payload: unknown): string {
  const value = read(consumer, source, payload);
  const key = Array.isArray(value) ? compositeKey(consumer, value) : keyPart(consumer, value);
  const bytes = Buffer.byteLength(key);
  if (bytes > MAX_KEY_BYTES) {
    throw new InvalidKeyError(
      consumer,
      `it has ${bytes} bytes, at most ${MAX_KEY_BYTES} are allowed`,
    );
  }
  return key;
}

function read(consumer: string, source: KeySource, payload: unknown): unknown {
  if (typeof source === 'function') {
    try {
      return pick(source, payload);
    } catch (error) {
      throw new InvalidKeyError(consumer, `the key function failed: ${textOf(error)}`, error);
    }
  }
  return typeof source === 'string'
    ? valueAt(payload, source)
    : source.map((path) => valueAt(payload, path));
}

/** Own properties only: a path never reaches a prototype. */
function valueAt(payload: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (value, name) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, name)
          ? (value as Record<string, unknown>)[name]
          : undefined,
      payload,
    );
}

function compositeKey(consumer: string, parts: readonly unknown[]): string {
  if (parts.length === 0) {
    throw new InvalidKeyError(consumer, 'the list of its parts is empty');
  }
  return JSON.stringify(Array.from(parts, (part) => keyPart(consumer, part)));
}

function keyPart(consumer: string, value: unknown): string {
  const fault = faultOf(value);
  if (fault !== undefined) {
    throw new InvalidKeyError(consumer, fault);
  }
  return String(value);
}

function faultOf(value: unknown): string | undefined {
  switch (typeof value) {
    case 'string':
      return faultOfText(value);
    case 'bigint':
      return undefined;
    case 'number':
      return Number.isSafeInteger(value)
        ? undefined
        : `the number ${value} is not a safe integer; past 2^53 send it as a string`;
    case 'object':
      return value === null ? 'the value is null' : 'the value is an object; name the field in it';
    default:
      return `the value is ${value === undefined ? 'missing' : `a ${typeof value}`}`;
  }
}

function faultOfText(text: string): string | undefined {
  if (text.trim() === '') {
    return 'the text is empty or blank';
  }
  if (text.includes('\0')) {
    return 'the text holds a NUL character';
  }
  return text.isWellFormed() ? undefined : 'the text holds half of a surrogate pair';
}
