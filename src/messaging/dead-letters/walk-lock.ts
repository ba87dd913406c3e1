import { setTimeout as sleep } from 'node:timers/promises';
import type { Channel, ChannelModel } from 'amqplib';
import { DeadLettersBusyError, NoDeadLetterQueueError } from './errors.js';

const LOCKED = 405;
const NOT_FOUND = 404;
/** For the broker to notice the end of the walk before this one. */
const GRACE_MS = 2_000;
const ASK_AGAIN_MS = 50;

/**
 * Resolves when nobody else has letters in their hands, with how many there are. Two walks at once would
 * each see what the other has not taken, and take the rest for gone.
 *
 * An exclusive queue on the connection is the lock: quorum queues do not know exclusive consumers, and
 * the broker itself removes it with the connection, however that ends.
 *
 * @throws DeadLettersBusyError
 * @throws NoDeadLetterQueueError
 */
export async function lockLetters(connection: ChannelModel, queue: string): Promise<number> {
  const until = Date.now() + GRACE_MS;
  while (!(await declareLock(connection, `${queue}.lock`))) {
    await waitFor(until, new DeadLettersBusyError(queue, 'another command'));
  }
  return untilReturned(connection, queue, until);
}

/**
 * Resolves when no consumer has letters in its hands, with how many there are. The broker answers the end of a
 * channel before the queue has what was on it.
 *
 * @throws DeadLettersBusyError
 */
export async function untilReturned(
  connection: ChannelModel,
  queue: string,
  until = Date.now() + GRACE_MS,
): Promise<number> {
  for (;;) {
    const { messageCount, consumerCount } = await depthOf(connection, queue);
    if (consumerCount === 0) {
      return messageCount;
    }
    await waitFor(until, new DeadLettersBusyError(queue, 'a consumer of its own'));
  }
}

async function declareLock(connection: ChannelModel, lock: string): Promise<boolean> {
  return onChannel(connection, LOCKED, false, async (channel) => {
    await channel.assertQueue(lock, { exclusive: true, durable: true });
    return true;
  });
}

async function depthOf(
  connection: ChannelModel,
  queue: string,
): Promise<{ messageCount: number; consumerCount: number }> {
  const depth = await onChannel(connection, NOT_FOUND, undefined, (channel) =>
    channel.checkQueue(queue),
  );
  if (depth === undefined) {
    throw new NoDeadLetterQueueError(queue);
  }
  return depth;
}

/** A refusal closes the channel on which it was met, so each question has its own. */
async function onChannel<T>(
  connection: ChannelModel,
  refusal: number,
  refused: T,
  ask: (channel: Channel) => Promise<T>,
): Promise<T> {
  const channel = await connection.createChannel();
  channel.on('error', () => undefined);
  try {
    const answer = await ask(channel);
    await channel.close();
    return answer;
  } catch (error) {
    if ((error as { code?: unknown }).code === refusal) {
      return refused;
    }
    throw error;
  }
}

async function waitFor(until: number, error: Error): Promise<void> {
  if (Date.now() > until) {
    throw error;
  }
  await sleep(ASK_AGAIN_MS);
}
