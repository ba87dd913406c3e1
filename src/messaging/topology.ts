import type { Channel, Options } from 'amqplib';
import { TopologyError } from './errors.js';

/**
 * A backstop for messages that kill the process before their failure can be counted: after so many
 * deliveries the broker dead-letters them by itself.
 */
export const DELIVERY_LIMIT = 20;
const PRECONDITION_FAILED = 406;

export const DEFAULT_EXCHANGE = '';

/** `commissions`, `commissions.dead` and `commissions.retry.5000`. */
export const deadLetterQueue = (queue: string): string => `${queue}.dead`;
export const retryQueue = (queue: string, delayMs: number): string => `${queue}.retry.${delayMs}`;

export interface Topology {
  queue: string;
  exchange: string;
  /** Patterns of the handlers; each binds the queue to the exchange. */
  patterns: readonly string[];
  retryDelaysMs: readonly number[];
}

/** A channel of the client, or one that outlives its connection. */
export interface TopologyChannel extends Pick<Channel, 'assertExchange' | 'assertQueue'> {
  bindQueue(queue: string, exchange: string, pattern: string): Promise<unknown>;
}

/**
 * Declares what the service needs. Safe to repeat: what exists with the same arguments stays as it is.
 *
 * @throws TopologyError when something exists with other arguments
 */
export async function declareTopology(channel: TopologyChannel, topology: Topology): Promise<void> {
  const { queue, exchange } = topology;
  try {
    await channel.assertExchange(exchange, 'topic', { durable: true });
    await channel.assertQueue(deadLetterQueue(queue), quorum({}));
    await channel.assertQueue(
      queue,
      quorum({ ...deadLetterTo(deadLetterQueue(queue)), 'x-delivery-limit': DELIVERY_LIMIT }),
    );
    for (const delayMs of new Set(topology.retryDelaysMs)) {
      await channel.assertQueue(
        retryQueue(queue, delayMs),
        quorum({ ...deadLetterTo(queue), 'x-message-ttl': delayMs }),
      );
    }
    for (const pattern of topology.patterns) {
      await channel.bindQueue(queue, exchange, pattern);
    }
  } catch (error) {
    throw (error as { code?: unknown }).code === PRECONDITION_FAILED
      ? new TopologyError(error as Error)
      : error;
  }
}

function quorum(parameters: Record<string, unknown>): Options.AssertQueue {
  return { durable: true, arguments: { 'x-queue-type': 'quorum', ...parameters } };
}

/** At least once: the message leaves its queue only when the other one has it. */
function deadLetterTo(queue: string): Record<string, unknown> {
  return {
    'x-dead-letter-exchange': DEFAULT_EXCHANGE,
    'x-dead-letter-routing-key': queue,
    'x-dead-letter-strategy': 'at-least-once',
    'x-overflow': 'reject-publish',
  };
}
