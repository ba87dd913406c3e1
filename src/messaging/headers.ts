import type { ConsumeMessage, MessageProperties, MessagePropertyHeaders, Options } from 'amqplib';
import { messageOf, nameOf } from './error-text.js';

/** Every header that the service writes, and nothing else writes these names. */
export const HEADER = {
  /** How often the message has failed. Survives restarts and republishing. */
  attempt: 'x-attempt',
  originalExchange: 'x-original-exchange',
  originalRoutingKey: 'x-original-routing-key',
  originalUserId: 'x-original-user-id',
  reason: 'x-dead-reason',
  errorName: 'x-error-name',
  errorMessage: 'x-error-message',
  firstFailedAt: 'x-first-failed-at',
  lastFailedAt: 'x-last-failed-at',
  publishId: 'x-publish-id',
} as const;

/** The broker's own count of how often it has delivered this copy in vain. */
const DELIVERY_COUNT = 'x-delivery-count';

/**
 * Headers that make the broker act, or that describe another passage of the message: CC would send the
 * copy to further queues, and x-death belongs to the queue that it left.
 */
const NOT_COPIED = new Set([
  'CC',
  'BCC',
  'x-death',
  DELIVERY_COUNT,
  'x-first-death-exchange',
  'x-first-death-queue',
  'x-first-death-reason',
  'x-last-death-exchange',
  'x-last-death-queue',
  'x-last-death-reason',
  HEADER.publishId,
]);

/** The failed attempts that a message carries; anything but a count is none. */
export function attemptOf(headers: MessagePropertyHeaders | undefined): number {
  return countHeader(headers, HEADER.attempt);
}

/** How often the broker has delivered this copy before; it gives up at the queue's delivery limit. */
export function deliveriesOf(headers: MessagePropertyHeaders | undefined): number {
  return countHeader(headers, DELIVERY_COUNT);
}

function countHeader(headers: MessagePropertyHeaders | undefined, name: string): number {
  const count = headers?.[name] as unknown;
  return typeof count === 'number' && Number.isInteger(count) && count > 0 ? count : 0;
}

/** A text from a header, or undefined. */
export function textHeader(
  headers: MessagePropertyHeaders | undefined,
  name: string,
): string | undefined {
  const value = headers?.[name] as unknown;
  return typeof value === 'string' ? value : undefined;
}

/**
 * The properties of a copy: those of the original, persistent, without what would make the copy
 * expire, go elsewhere, or be refused.
 */
export function copyProperties(
  properties: MessageProperties,
  added: Record<string, unknown>,
): Options.Publish {
  const headers: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(properties.headers ?? {})) {
    if (!NOT_COPIED.has(name)) {
      headers[name] = value;
    }
  }
  // The broker checks user-id against the connection, and the copy is published by another user.
  if (properties.userId !== undefined) {
    headers[HEADER.originalUserId] = properties.userId;
  }
  return {
    contentType: properties.contentType as string | undefined,
    contentEncoding: properties.contentEncoding as string | undefined,
    priority: properties.priority as number | undefined,
    correlationId: properties.correlationId as string | undefined,
    replyTo: properties.replyTo as string | undefined,
    messageId: properties.messageId as string | undefined,
    timestamp: properties.timestamp as number | undefined,
    type: properties.type as string | undefined,
    appId: properties.appId as string | undefined,
    persistent: true,
    headers: { ...headers, ...added },
  };
}

/** What a copy of a failed message tells about its failure, and where the original came from. */
export function failureHeaders(
  { fields, properties: { headers } }: ConsumeMessage,
  attempt: number,
  error: unknown,
  reason: string | undefined,
): Record<string, unknown> {
  const now = new Date().toISOString();
  return {
    [HEADER.attempt]: attempt,
    [HEADER.originalExchange]: textHeader(headers, HEADER.originalExchange) ?? fields.exchange,
    [HEADER.originalRoutingKey]:
      textHeader(headers, HEADER.originalRoutingKey) ?? fields.routingKey,
    [HEADER.errorName]: nameOf(error),
    [HEADER.errorMessage]: messageOf(error),
    [HEADER.firstFailedAt]: textHeader(headers, HEADER.firstFailedAt) ?? now,
    [HEADER.lastFailedAt]: now,
    ...(reason === undefined ? {} : { [HEADER.reason]: reason }),
  };
}
