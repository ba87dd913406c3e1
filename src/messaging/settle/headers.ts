import type { ConsumeMessage, MessageProperties, MessagePropertyHeaders, Options } from 'amqplib';
import { messageOf, nameOf } from '../error-text.js';

/** Every header that the service writes, and nothing else writes these names. */
export const HEADER = {
  /** How often the message has failed. Survives restarts and republishing. */
  attempt: 'x-attempt',
  originalExchange: 'x-original-exchange',
  originalRoutingKey: 'x-original-routing-key',
  originalUserId: 'x-original-user-id',
  /** The queue whose consumer gave the message up, and to which a replay brings it back. */
  originalQueue: 'x-original-queue',
  /** The consumer whose handler failed, as its keys are scoped. */
  consumer: 'x-consumer',
  reason: 'x-dead-reason',
  errorName: 'x-error-name',
  errorMessage: 'x-error-message',
  firstFailedAt: 'x-first-failed-at',
  lastFailedAt: 'x-last-failed-at',
  publishId: 'x-publish-id',
  /** The failures that ended in a replay, oldest first. */
  history: 'x-dead-history',
} as const;

/** The broker's own count of how often it has delivered this copy in vain. */
export const DELIVERY_COUNT = 'x-delivery-count';

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
  // Of a failure before a replay; the copy gets its own, when it has one.
  HEADER.reason,
]);

/** The failed attempts that a message carries; anything but a count is none. */
export function attemptOf(headers: MessagePropertyHeaders | undefined): number {
  return countHeader(headers, HEADER.attempt);
}

/**
 * How often the broker has delivered this copy before, in vain. Only a redelivery has such a count; on
 * any other the header is what a producer wrote.
 */
export function deliveriesOf({ fields, properties }: ConsumeMessage): number {
  return fields.redelivered ? countHeader(properties.headers, DELIVERY_COUNT) : 0;
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

/** Where a message came from first, on every copy of it. */
export function originHeaders({
  fields,
  properties: { headers },
}: ConsumeMessage): Record<string, unknown> {
  return {
    [HEADER.originalExchange]: textHeader(headers, HEADER.originalExchange) ?? fields.exchange,
    [HEADER.originalRoutingKey]:
      textHeader(headers, HEADER.originalRoutingKey) ?? fields.routingKey,
  };
}

/** One failure of a message, as its copy tells it. */
export interface FailureNote {
  attempt: number;
  error: unknown;
  queue: string;
  consumer: string;
  firstFailedAt?: string | undefined;
  /** Of a dead letter. */
  reason?: string;
}

/** What a copy of a failed message tells about its failure, and where the original came from. */
export function failureHeaders(
  message: ConsumeMessage,
  { attempt, error, queue, consumer, firstFailedAt, reason }: FailureNote,
): Record<string, unknown> {
  const { headers } = message.properties;
  const now = new Date().toISOString();
  return {
    ...originHeaders(message),
    [HEADER.attempt]: attempt,
    [HEADER.originalQueue]: queue,
    [HEADER.consumer]: consumer,
    [HEADER.errorName]: nameOf(error),
    [HEADER.errorMessage]: messageOf(error),
    [HEADER.firstFailedAt]: textHeader(headers, HEADER.firstFailedAt) ?? firstFailedAt ?? now,
    [HEADER.lastFailedAt]: now,
    ...(reason === undefined ? {} : { [HEADER.reason]: reason }),
  };
}
