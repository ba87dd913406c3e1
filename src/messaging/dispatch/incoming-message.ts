import type { ConsumeMessage } from 'amqplib';
import {
  binaryEvent,
  isEvent,
  isStructured,
  structuredEvent,
  type CloudEvent,
} from './cloud-event.js';
import { HEADER, textHeader } from '../settle/headers.js';
import { isRecord, readBytes, readJson } from './message-body.js';

/** What a message says, whichever producer wrote it. */
export interface IncomingMessage {
  /** Where it may be routed by, best first. */
  patterns: unknown[];
  data: unknown;
  /** The request's id in Nest's envelope. */
  requestId: string | undefined;
}

/**
 * Reads a CloudEvent, in binary mode (attributes in the headers) or structured (`specversion`, `data`), a
 * Nest envelope (`pattern`, `data`), or a bare JSON body, which is routed by its routing key. What the
 * properties declare goes before what the body looks like.
 *
 * @throws UnprocessableMessageError
 */
export function parseMessage(message: ConsumeMessage): IncomingMessage {
  const declaredEvent = isStructured(message);
  const bytes = readBytes(message.content, message.properties.contentEncoding);
  const binary = declaredEvent ? undefined : binaryEvent(message, bytes);
  if (binary !== undefined) {
    return fromEvent(message, binary);
  }
  const body = readJson(bytes);
  if (declaredEvent) {
    return fromEvent(message, structuredEvent(body));
  }
  if (isNestEnvelope(body)) {
    const requestId = typeof body.id === 'string' ? body.id : undefined;
    return { patterns: [body.pattern], data: body.data, requestId };
  }
  return isEvent(body)
    ? fromEvent(message, structuredEvent(body))
    : { patterns: patternsOf(message), data: body, requestId: undefined };
}

/** An event’s type is the last resort for routing: it is seldom a routing key. */
function fromEvent(message: ConsumeMessage, { type, data }: CloudEvent): IncomingMessage {
  return { patterns: [...patternsOf(message), type], data, requestId: undefined };
}

function patternsOf({ fields, properties: { headers, type } }: ConsumeMessage): unknown[] {
  return [textHeader(headers, HEADER.originalRoutingKey) ?? fields.routingKey, type as unknown];
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
