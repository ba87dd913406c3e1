import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { ConfirmedPublisher } from '../publish/confirmed-publisher.js';
import type { Delivery } from '../consume/delivery.js';
import { messageOf } from '../error-text.js';
import { UnroutableMessageError } from '../errors.js';
import { copyProperties } from './headers.js';
import { DEFAULT_EXCHANGE } from '../consume/topology.js';

const FIRST_REPUBLISH_MS = 250;
const LONGEST_REPUBLISH_MS = 15_000;

/** Stores a message a second time, before the first one is acknowledged. */
export class Copier {
  private readonly logger = new Logger(Copier.name);

  constructor(
    private readonly publisher: ConfirmedPublisher,
    /** Declares the queues again. */
    private readonly redeclare: () => Promise<void>,
  ) {}

  /**
   * Resolves when the broker has confirmed the copy, however long that takes. Meanwhile the original
   * stays unacknowledged: it holds its place in the prefetch window, so that nothing grows, and comes
   * back when this process dies.
   *
   * @param added headers of the copy, beside those of the message
   * @throws what was in the way, once the original is being delivered again
   */
  async store(delivery: Delivery, queue: string, added: Record<string, unknown>): Promise<void> {
    const { content, properties } = delivery.message;
    const options = copyProperties(properties, added);
    for (let waitMs = FIRST_REPUBLISH_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_REPUBLISH_MS)) {
      // What is delivered again is settled there; a copy of it would be one too many.
      delivery.on.closed.throwIfAborted();
      try {
        const stored = this.publisher.publishPatiently(DEFAULT_EXCHANGE, queue, content, options);
        await unlessAborted(stored, delivery.on.closed);
        return;
      } catch (refusal) {
        this.logger.error(`No copy for ${queue} could be stored: ${messageOf(refusal)}`);
        await sleep(waitMs, undefined, { ref: false, signal: delivery.on.closed });
        await this.restoreQueues(refusal);
      }
    }
  }

  /** An operator who deletes a queue for copies must not stop this consumer message by message. */
  private async restoreQueues(refusal: unknown): Promise<void> {
    if (refusal instanceof UnroutableMessageError) {
      await this.redeclare().catch((error: unknown) => {
        this.logger.error(`The queues could not be declared again: ${messageOf(error)}`);
      });
    }
  }
}

async function unlessAborted(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    signal.addEventListener('abort', stop);
  });
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
