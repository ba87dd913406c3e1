import type { ConsumeMessage } from 'amqplib';
import { UnprocessableMessageError } from '../errors.js';
import { textHeader } from '../settle/headers.js';
import { isRecord, readJson } from './message-body.js';

/** What of a CloudEvent matters here, whichever way it came. */
export interface CloudEvent {
  type: string;
  /** Undefined when the event has none. */
  data: unknown;
}

/** The binding for AMQP, what JMS has to write for it, and what bridges from HTTP and Kafka leave. */
const PREFIXES = ['cloudEvents:', 'cloudEvents_', 'ce-', 'ce_'] as const;
/** Joined once: these are looked for in every message. */
const BINARY_MODE = PREFIXES.map((prefix) => ({
  specversion: `${prefix}specversion`,
  type: `${prefix}type`,
  datacontenttype: `${prefix}datacontenttype`,
}));

const FORMATS = 'application/cloudevents';
const JSON_FORMAT = 'application/cloudevents+json';
const BATCH_FORMATS = 'application/cloudevents-batch';

/**
 * Whether the body is declared to be a whole event.
 *
 * @throws UnprocessableMessageError when it is declared to be events in a form that is not read
 */
export function isStructured({ properties }: ConsumeMessage): boolean {
  const mediaType = mediaTypeOf(properties.contentType);
  if (mediaType === undefined || !mediaType.startsWith(FORMATS)) {
    return false;
  }
  if (mediaType.startsWith(BATCH_FORMATS)) {
    throw new UnprocessableMessageError(
      'unsupported-content-type',
      'a batch of CloudEvents is not supported: a message has one business key, and is processed or ' +
        'fails as a whole. Send each event as a message of its own',
    );
  }
  if (mediaType !== JSON_FORMAT) {
    throw new UnprocessableMessageError(
      'unsupported-content-type',
      `CloudEvents are not read as ${quoted(mediaType)}: send ${JSON_FORMAT}, or binary mode`,
    );
  }
  return true;
}

/**
 * Reads an event in binary mode: its attributes are headers, and the body is its data, whatever that
 * looks like. Undefined when the headers are not an event's.
 *
 * @param bytes the body, decoded
 * @throws UnprocessableMessageError
 */
export function binaryEvent(
  { properties: { headers, contentType } }: ConsumeMessage,
  bytes: Buffer,
): CloudEvent | undefined {
  for (const names of BINARY_MODE) {
    const type = textHeader(headers, names.type);
    if (type !== undefined && textHeader(headers, names.specversion) !== undefined) {
      const dataContentType =
        mediaTypeOf(contentType) ?? textHeader(headers, names.datacontenttype);
      return { type, data: dataIn(bytes, dataContentType) };
    }
  }
  return undefined;
}

/** Whether a body looks like an event, though its content type may say no more than JSON. */
export function isEvent(body: unknown): body is EventBody {
  return isRecord(body) && typeof body.specversion === 'string' && typeof body.type === 'string';
}

interface EventBody extends Record<string, unknown> {
  specversion: string;
  type: string;
}

/**
 * Reads an event in structured mode: the body is the whole event, as JSON.
 *
 * @throws UnprocessableMessageError
 */
export function structuredEvent(body: unknown): CloudEvent {
  if (!isEvent(body)) {
    throw invalid('the body has no specversion and type');
  }
  const { type, data, data_base64: encoded, datacontenttype } = body;
  if (isUnset(encoded)) {
    if (data !== undefined) {
      requireJson(datacontenttype);
    }
    return { type, data };
  }
  if (!isUnset(data)) {
    throw invalid('it has both data and data_base64');
  }
  return { type, data: dataIn(bytesOf(encoded), datacontenttype) };
}

function dataIn(bytes: Buffer, contentType: unknown): unknown {
  if (bytes.length === 0) {
    return undefined;
  }
  requireJson(contentType);
  return readJson(bytes);
}

function bytesOf(encoded: unknown): Buffer {
  const bytes = typeof encoded === 'string' ? Buffer.from(encoded, 'base64') : undefined;
  // The decoder skips what is not Base64, and would make something of anything.
  if (bytes === undefined || bytes.toString('base64') !== encoded) {
    throw new UnprocessableMessageError(
      'not-decodable',
      'the data_base64 of the CloudEvent is not Base64',
    );
  }
  return bytes;
}

/** Data without a content type is JSON, says the format. */
function requireJson(contentType: unknown): void {
  const mediaType = mediaTypeOf(contentType);
  if (mediaType !== undefined && !/^[^/]+\/(?:[^/]+\+)?json$/.test(mediaType)) {
    throw new UnprocessableMessageError(
      'unsupported-content-type',
      `the data of the CloudEvent is ${quoted(mediaType)}, and only JSON is read`,
    );
  }
}

/** Without its parameters, in lower case. Undefined when there is none. */
function mediaTypeOf(contentType: unknown): string | undefined {
  if (typeof contentType !== 'string') {
    return undefined;
  }
  const mediaType = contentType.split(';', 1)[0]!.trim().toLowerCase();
  return mediaType === '' ? undefined : mediaType;
}

/** In an event's body it can be of any length. */
function quoted(mediaType: string): string {
  return JSON.stringify(mediaType.slice(0, 100));
}

function invalid(why: string): UnprocessableMessageError {
  return new UnprocessableMessageError('invalid-cloud-event', `not a CloudEvent: ${why}`);
}

/** The format takes null for an attribute that is not there. */
function isUnset(attribute: unknown): attribute is null | undefined {
  return attribute === null || attribute === undefined;
}
