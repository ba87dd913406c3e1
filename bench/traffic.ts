import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import amqp, { type ConfirmChannel } from 'amqplib';
import type { Contender } from './contenders.js';
import { PRODUCT_TYPE } from './contenders/effects.js';
import { ROUTING_KEYS, type RunSettings, type Workload } from './contenders/run-settings.js';

/** So many rows take all the balances: enough contention to be felt, as with a sales team. */
const SALESPEOPLE = 100;
const CONSUMER_GONE_MS = 10_000;

/** Empties the queue and fills it, and returns when all is confirmed. */
export async function preload(
  channel: ConfirmChannel,
  settings: RunSettings,
  { nestEnvelope, duplicates }: Contender,
): Promise<void> {
  const { exchange, queue, workload } = settings;
  await channel.purgeQueue(queue);
  const bodies = Array.from({ length: distinctMessages(settings, duplicates) }, (_, index) =>
    bodyOf(index, workload, nestEnvelope),
  );
  for (const body of duplicates ? [...bodies, ...bodies] : bodies) {
    channel.publish(exchange, ROUTING_KEYS[workload], body, {
      persistent: true,
      contentType: 'application/json',
      messageId: randomUUID(),
    });
  }
  await channel.waitForConfirms();
}

/** Of duplicates, the first copies are the warm-up. */
export function distinctMessages(
  { warmUp, messages }: RunSettings,
  duplicates: true | undefined,
): number {
  return duplicates ? messages : warmUp + messages;
}

function bodyOf(index: number, workload: Workload, nestEnvelope: true | undefined): Buffer {
  const sale = {
    saleId: `S-${index}`,
    salespersonId: `P-${index % SALESPEOPLE}`,
    productType: PRODUCT_TYPE,
    amountCents: 10_000 + index,
    currency: 'EUR',
    completedAt: '2026-05-03T10:15:00Z',
  };
  const body = nestEnvelope ? { pattern: ROUTING_KEYS[workload], data: sale } : sale;
  return Buffer.from(JSON.stringify(body));
}

/** The messages that are left when no consumer is, here and among the dead letters. */
export async function leftOver(rabbitmqUrl: string, queue: string): Promise<number> {
  const connection = await amqp.connect(rabbitmqUrl);
  try {
    const channel = await connection.createChannel();
    const deadline = Date.now() + CONSUMER_GONE_MS;
    for (;;) {
      const main = await channel.checkQueue(queue);
      if (main.consumerCount === 0) {
        const dead = await channel.checkQueue(`${queue}.dead`);
        return main.messageCount + dead.messageCount;
      }
      if (Date.now() > deadline) {
        throw new Error(`The contender has ended, and its consumer of ${queue} has not.`);
      }
      await sleep(50);
    }
  } finally {
    await connection.close();
  }
}
