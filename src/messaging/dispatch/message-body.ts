import { decode } from './content-encoding.js';
import { UnprocessableMessageError } from '../errors.js';

/** Bigger bodies are dead-lettered unread, compressed or not. */
const MAX_BODY_BYTES = 1024 * 1024;
/** Deeper than any real message, and far from what overflows a stack. */
const MAX_DEPTH = 100;

/**
 * The bytes that the producer meant: decoded, when the body is compressed.
 *
 * @param encoding the property `content-encoding`, as it came
 * @throws UnprocessableMessageError
 */
export function readBytes(content: Buffer, encoding: unknown): Buffer {
  if (content.length > MAX_BODY_BYTES) {
    throw new UnprocessableMessageError(
      'too-large',
      `the body has ${content.length} bytes, at most ${MAX_BODY_BYTES} are read`,
    );
  }
  return typeof encoding === 'string' && encoding !== ''
    ? decode(content, encoding, MAX_BODY_BYTES)
    : content;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * The value that bytes from outside stand for, when it is safe to work with.
 *
 * @param bytes at most as many as `readBytes` gives
 * @throws UnprocessableMessageError
 */
export function readJson(bytes: Buffer): unknown {
  if (nestingDepth(bytes) > MAX_DEPTH) {
    throw new UnprocessableMessageError(
      'too-deep',
      `the body is nested over ${MAX_DEPTH} levels deep`,
    );
  }
  let text: string;
  let value: unknown;
  try {
    text = UTF8.decode(bytes);
    value = JSON.parse(text);
  } catch {
    // The parser's own message quotes the body, and payloads are not logged.
    throw new UnprocessableMessageError('not-json', 'the body is not JSON in UTF-8');
  }
  // An escaped name is rare; only then is it worth to walk the whole value.
  if ((text.includes('__proto__') || text.includes('\\u')) && holdsProto(value)) {
    throw new UnprocessableMessageError('unsafe-properties', 'the body has a property __proto__');
  }
  return value;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING_BRACKET = 0x5b;
const CLOSING_BRACKET = 0x5d;
const OPENING_BRACE = 0x7b;
const CLOSING_BRACE = 0x7d;

/** Counted on the bytes, before anything recursive sees the body. */
export function nestingDepth(content: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let quoted = false;
  for (let index = 0; index < content.length; index++) {
    const byte = content[index]!;
    if (quoted) {
      if (byte === BACKSLASH) {
        index++;
      } else if (byte === QUOTE) {
        quoted = false;
      }
    } else if (byte === QUOTE) {
      quoted = true;
    } else if (byte === OPENING_BRACE || byte === OPENING_BRACKET) {
      deepest = Math.max(deepest, ++depth);
    } else if (byte === CLOSING_BRACE || byte === CLOSING_BRACKET) {
      depth--;
    }
  }
  return deepest;
}

function holdsProto(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) {
    return false;
  }
  return Object.hasOwn(value, '__proto__') || Object.values(value).some(holdsProto);
}

/** Whether JSON is an object, rather than null, a list or a plain value. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
