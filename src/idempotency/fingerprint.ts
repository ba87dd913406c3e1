import { hash } from 'node:crypto';
import { InvalidFingerprintError } from './errors.js';
import { pick, textOf } from './payload-function.js';

/**
 * What a handler's messages are compared by when a key returns: the whole payload, the fields that a
 * function picks, or nothing.
 */
export type FingerprintSource<Payload = unknown> = ((payload: Payload) => unknown) | false;

/** Deeper than any real message, and far from the end of the stack. */
const MAX_DEPTH = 200;

/**
 * SHA-256 of the canonical JSON of what the handler compares by, or null when it compares nothing.
 *
 * @throws InvalidFingerprintError
 */
export function fingerprint(
  consumer: string,
  source: FingerprintSource | undefined,
  payload: unknown,
): Buffer | null {
  if (source === false) {
    return null;
  }
  try {
    const compared = source === undefined ? payload : pick(source, payload);
    return hash('sha256', canonicalJson(compared), 'buffer');
  } catch (error) {
    throw new InvalidFingerprintError(consumer, textOf(error), error);
  }
}

/**
 * JSON with sorted property names: two payloads that differ only in their order give the same text.
 *
 * @throws RangeError when the value is nested too deeply
 */
export function canonicalJson(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) {
    throw new RangeError(`the value is nested more than ${MAX_DEPTH} levels deep`);
  }
  if (typeof value === 'bigint') {
    return `"${value}"`;
  }
  if (typeof value !== 'object' || value === null) {
    return JSON.stringify(value) ?? 'null';
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') {
    return canonicalJson((value as { toJSON: () => unknown }).toJSON(), depth + 1);
  }
  if (Array.isArray(value)) {
    return `[${value.map((item) => canonicalJson(item, depth + 1)).join(',')}]`;
  }
  const record = value as Record<string, unknown>;
  const members: string[] = [];
  for (const name of Object.keys(record).sort()) {
    if (record[name] !== undefined) {
      members.push(`${JSON.stringify(name)}:${canonicalJson(record[name], depth + 1)}`);
    }
  }
  return `{${members.join(',')}}`;
}
