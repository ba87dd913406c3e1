import type { ConsumeMessage } from 'amqplib';
import { UnprocessableMessageError } from './errors.js';
import { HEADER, textHeader } from './headers.js';

/** Bigger bodies are dead-lettered unread. */
const MAX_BODY_BYTES = 1024 * 1024;
/** Deeper than any real message, and far from what overflows a stack. */
const MAX_DEPTH = 100;

/** What a message says, whichever producer wrote it. */
export interface IncomingMessage {
  /** Where it may be routed by, best first. */
  patterns: unknown[];
  data: unknown;
  /** The request's id in Nest's envelope. */
  requestId: string | undefined;
}

/**
 * Reads a Nest envelope (`pattern`, `data`), a CloudEvent (`specversion`, `data`), or a bare JSON body,
 * which is routed by its routing key.
 *
 * @throws UnprocessableMessageError
 */
export function parseMessage(message: ConsumeMessage): IncomingMessage {
  const body = parseBody(message.content);
  const { headers, type } = message.properties;
  const routingKey = textHeader(headers, HEADER.originalRoutingKey) ?? message.fields.routingKey;
  const byProperties = [routingKey, type as unknown];
  if (isNestEnvelope(body)) {
    const requestId = typeof body.id === 'string' ? body.id : undefined;
    return { patterns: [body.pattern], data: body.data, requestId };
  }
  if (isCloudEvent(body)) {
    return { patterns: [...byProperties, body.type], data: body.data, requestId: undefined };
  }
  return { patterns: byProperties, data: body, requestId: undefined };
}

const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function parseBody(content: Buffer): unknown {
  if (content.length > MAX_BODY_BYTES) {
    throw new UnprocessableMessageError(
      'too-large',
      `the body has ${content.length} bytes, at most ${MAX_BODY_BYTES} are read`,
    );
  }
  if (nestingDepth(content) > MAX_DEPTH) {
    throw new UnprocessableMessageError(
      'too-deep',
      `the body is nested over ${MAX_DEPTH} levels deep`,
    );
  }
  let text: string;
  let body: unknown;
  try {
    text = UTF8.decode(content);
    body = JSON.parse(text);
  } catch {
    // The parser's own message quotes the body, and payloads are not logged.
    throw new UnprocessableMessageError('not-json', 'the body is not JSON in UTF-8');
  }
  // An escaped name is rare; only then is it worth to walk the whole body.
  if ((text.includes('__proto__') || text.includes('\\u')) && holdsProto(body)) {
    throw new UnprocessableMessageError('unsafe-properties', 'the body has a property __proto__');
  }
  return body;
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

const ENVELOPE = new Set(['pattern', 'data', 'id']);

function isNestEnvelope(body: unknown): body is { pattern: unknown; data: unknown; id?: unknown } {
  return (
    isRecord(body) &&
    ['string', 'number', 'object'].includes(typeof body.pattern) &&
    body.pattern !== null &&
    Object.keys(body).every((name) => ENVELOPE.has(name))
  );
}

function isCloudEvent(body: unknown): body is { type: unknown; data: unknown } {
  return isRecord(body) && typeof body.specversion === 'string' && typeof body.type === 'string';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
