import { createHash } from 'node:crypto';
import type { ConsumeMessage } from 'amqplib';
import { attemptOf, DELIVERY_COUNT, HEADER, textHeader } from '../settle/headers.js';
import { isRecord } from '../dispatch/message-body.js';
import { suspectQueue } from '../consume/topology.js';
import { historyOf, type PastFailure } from './history.js';

/** A message that was given up, and why. Times are ISO 8601, in UTC. */
export interface DeadLetter {
  /** The same at every look, until the letter is replayed and fails again. */
  id: string;
  /** As the service or the broker (`delivery-limit`, `rejected`) gives it; `unknown` when neither does. */
  reason: string;
  /** Of the last attempt that failed. */
  errorName: string | undefined;
  errorMessage: string | undefined;
  attempts: number;
  firstFailedAt: string | undefined;
  lastFailedAt: string | undefined;
  /** Whose handler failed, as its keys are scoped: `commissions/sale.completed`. */
  consumer: string | undefined;
  /** To which a replay sends it back. */
  queue: string | undefined;
  /** Where it was published first. */
  exchange: string | undefined;
  routingKey: string | undefined;
  messageId: string | undefined;
  contentType: string | undefined;
  contentEncoding: string | undefined;
  headers: Record<string, unknown>;
  /** Byte for byte as it came. */
  body: Buffer;
  /** Of the body, in bytes. */
  size: number;
  /** Its earlier failures, of which each ended in a replay; the last ten, oldest first. */
  history: readonly PastFailure[];
}

/** Written by the broker at each look, so no part of what a letter is. */
const COUNTED_BY_BROKER = new Set<string>([DELIVERY_COUNT, 'x-acquired-count']);

/** What a message in the dead-letter queue tells about itself. */
export function deadLetterOf(message: ConsumeMessage): DeadLetter {
  const { content: body, properties } = message;
  const headers: Record<string, unknown> = { ...properties.headers };
  const death = lastDeathOf(headers);
  const text = (name: string): string | undefined => textHeader(headers, name);
  const lastFailedAt = death?.at ?? text(HEADER.lastFailedAt);
  return {
    id: idOf(message),
    // A letter of the broker's can carry the reason of an earlier stay; the service's carries no x-death.
    reason: death?.reason ?? text(HEADER.reason) ?? 'unknown',
    errorName: text(HEADER.errorName),
    errorMessage: text(HEADER.errorMessage),
    attempts: attemptOf(headers),
    firstFailedAt: text(HEADER.firstFailedAt) ?? lastFailedAt,
    lastFailedAt,
    consumer: text(HEADER.consumer),
    queue: death?.queue ?? text(HEADER.originalQueue),
    exchange: text(HEADER.originalExchange) ?? death?.exchange,
    routingKey: text(HEADER.originalRoutingKey) ?? death?.routingKey,
    messageId: properties.messageId as string | undefined,
    contentType: properties.contentType as string | undefined,
    contentEncoding: properties.contentEncoding as string | undefined,
    headers,
    body,
    size: body.length,
    history: historyOf(headers),
  };
}

/**
 * Of body, headers and message id. The service's own letters differ in their publish id, so two letters
 * have one id only when they are copies of each other.
 */
function idOf({ content, properties }: ConsumeMessage): string {
  const headers = Object.entries(properties.headers ?? {}).filter(
    ([name]) => !COUNTED_BY_BROKER.has(name),
  );
  return createHash('sha256')
    .update(JSON.stringify([properties.messageId ?? null, headers]))
    .update(content)
    .digest('hex')
    .slice(0, 16);
}

interface Death {
  reason: string;
  queue: string | undefined;
  exchange: string | undefined;
  routingKey: string | undefined;
  at: string | undefined;
}

/** How the broker itself moved the message here: the first of its deaths is the latest. */
function lastDeathOf(headers: Record<string, unknown>): Death | undefined {
  const deaths = headers['x-death'];
  const death: unknown = Array.isArray(deaths) ? deaths[0] : undefined;
  if (!isRecord(death) || typeof death.reason !== 'string') {
    return undefined;
  }
  const keys: unknown = death['routing-keys'];
  return {
    reason: death.reason.replaceAll('_', '-'),
    queue: mainQueueOf(textOf(death.queue)),
    exchange: textOf(death.exchange),
    routingKey: Array.isArray(keys) ? textOf(keys[0]) : undefined,
    at: timeOf(death.time),
  };
}

/** What died while it ran alone begins anew among the others. */
function mainQueueOf(queue: string | undefined): string | undefined {
  const suffix = suspectQueue('');
  return queue?.endsWith(suffix) === true ? queue.slice(0, -suffix.length) : queue;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** AMQP's timestamps are seconds. */
function timeOf(value: unknown): string | undefined {
  const seconds: unknown = isRecord(value) ? value.value : undefined;
  return typeof seconds === 'number' ? new Date(seconds * 1_000).toISOString() : undefined;
}
