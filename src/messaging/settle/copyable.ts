import type { MessageProperties } from 'amqplib';

/**
 * The client has 64 KB for all headers, and a copy gets some more. Counted as JSON, which is never
 * much shorter than AMQP: at worst, for short fractions, less than half.
 */
const MAX_HEADER_BYTES = 24 * 1024;
/** AMQP's limit for names and for every property that is a text. */
const MAX_SHORT_TEXT_BYTES = 255;
/** From here on the client takes every number for a whole one, and refuses those that are not. */
const FIRST_COARSE_NUMBER = 2 ** 50;

const SHORT_TEXTS = [
  'contentType',
  'contentEncoding',
  'correlationId',
  'replyTo',
  'messageId',
  'type',
  'appId',
] as const;

/**
 * Whether the client can write again what it has read. Other clients send more than ours can: a
 * message whose properties cannot be written would be copied, refused and copied for ever.
 */
export function isCopyable(properties: MessageProperties): boolean {
  try {
    const headers = JSON.stringify(properties.headers ?? {}, refuseUnwritable);
    return (
      Buffer.byteLength(headers) <= MAX_HEADER_BYTES &&
      SHORT_TEXTS.every((name) => isShort((properties[name] as string | undefined) ?? ''))
    );
  } catch {
    return false;
  }
}

function refuseUnwritable(name: string, value: unknown): unknown {
  const unwritable =
    typeof value === 'number' &&
    !Number.isInteger(value) &&
    !(Math.abs(value) < FIRST_COARSE_NUMBER);
  if (unwritable || !isShort(name)) {
    throw new RangeError(`the header ${name} cannot be written`);
  }
  return value;
}

function isShort(text: string): boolean {
  return Buffer.byteLength(text) <= MAX_SHORT_TEXT_BYTES;
}
