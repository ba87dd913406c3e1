import type { Channel, Options } from 'amqplib';
import { TopologyError } from '../errors.js';
import type { QueuePlan } from './queue-plan.js';

/**
 * A backstop: after so many deliveries the broker dead-letters a message by itself. The service gives a
 * message that ends the process up long before; this is for one that does so before it can be looked at.
 */
const DELIVERY_LIMIT = 20;
/** In an ordered queue a message is handed back each few minutes for as long as an outage lasts. */
const ORDERED_DELIVERY_LIMIT = 1_000;
/** Looking at a message counts as a delivery, and RabbitMQ 4 drops what has no limit after twenty. */
const NO_DELIVERY_LIMIT = 1_000_000_000;
const PRECONDITION_FAILED = 406;

export const DEFAULT_EXCHANGE = '';

/** One for the whole service: `commissions.dead`. */
export const deadLetterQueue = (service: string): string => `${service}.dead`;
/** One for each delay of a queue: `commissions.retry.5000`. */
export const retryQueue = (queue: string, delayMs: number): string => `${queue}.retry.${delayMs}`;
/** Messages that may have ended a process, consumed one by one: `commissions.suspects`. */
export const suspectQueue = (queue: string): string => `${queue}.suspects`;
/** How often the first message of an ordered queue has failed: `commissions.ledger.notes`. */
export const noteQueue = (queue: string): string => `${queue}.notes`;

export interface Topology {
  /** The service's queue, after which the dead-letter queue is named. */
  service: string;
  exchange: string;
}

type Declaring = Pick<Channel, 'assertExchange' | 'assertQueue' | 'bindQueue' | 'unbindQueue'>;

/**
 * Declares a queue and all that belongs to it. Safe to repeat: what exists with the same arguments stays
 * as it is.
 *
 * @throws TopologyError when something exists with other arguments
 */
export function declareQueue(
  channel: Declaring,
  plan: QueuePlan,
  { service, exchange }: Topology,
): Promise<void> {
  const { name } = plan;
  const deadLetters = deadLetterTo(deadLetterQueue(service));
  return explained(async () => {
    await channel.assertExchange(exchange, 'topic', { durable: true });
    await channel.assertQueue(deadLetterQueue(service), quorum(NO_DELIVERY_LIMIT));
    if (plan.ordered) {
      await channel.assertQueue(
        name,
        quorum(ORDERED_DELIVERY_LIMIT, { ...deadLetters, 'x-single-active-consumer': true }),
      );
      await channel.assertQueue(noteQueue(name), quorum(NO_DELIVERY_LIMIT, { 'x-max-length': 1 }));
    } else {
      await channel.assertQueue(name, quorum(DELIVERY_LIMIT, deadLetters));
      await channel.assertQueue(suspectQueue(name), quorum(DELIVERY_LIMIT, deadLetters));
      for (const delayMs of plan.delays.delaysMs) {
        await channel.assertQueue(
          retryQueue(name, delayMs),
          quorum(undefined, { ...deadLetterTo(name), 'x-message-ttl': delayMs }),
        );
      }
    }
    const patterns = new Set(plan.handlers.map((handler) => handler.pattern));
    for (const pattern of patterns) {
      await channel.bindQueue(name, exchange, pattern);
    }
    // A handler that has moved to another queue has left its binding behind.
    for (const pattern of new Set(plan.elsewhere.map(({ handler }) => handler.pattern))) {
      if (!patterns.has(pattern)) {
        await channel.unbindQueue(name, exchange, pattern);
      }
    }
  });
}

async function explained(declare: () => Promise<void>): Promise<void> {
  try {
    await declare();
  } catch (error) {
    throw (error as { code?: unknown }).code === PRECONDITION_FAILED
      ? new TopologyError(error as Error)
      : error;
  }
}

function quorum(
  deliveryLimit: number | undefined,
  parameters: Record<string, unknown> = {},
): Options.AssertQueue {
  const limit = deliveryLimit === undefined ? {} : { 'x-delivery-limit': deliveryLimit };
  return { durable: true, arguments: { 'x-queue-type': 'quorum', ...parameters, ...limit } };
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
