import { createHash } from 'node:crypto';
import { Logger } from '@nestjs/common';
import type { ConsumeMessage } from 'amqplib';
import type { ConfirmedPublisher } from '../publish/confirmed-publisher.js';
import type { Delivery } from './delivery.js';
import { messageOf } from '../error-text.js';
import { attemptOf, deliveriesOf } from '../settle/headers.js';
import { DEFAULT_EXCHANGE, noteQueue } from './topology.js';

/** How far the first message of an ordered queue has come. */
export interface Progress {
  /** How often it has failed. */
  attempt: number;
  /** It does not run before; milliseconds since 1970. */
  notBefore: number;
  /** So many of its deliveries ended because the message was handed back, and no process had ended. */
  handedBack: number;
  firstFailedAt?: string;
}

/**
 * A message of an ordered queue keeps its place while it is tried again, and so no copy of it can carry
 * the number of attempts. A note beside the queue does, for the process that takes over.
 */
export class AttemptNotes {
  private readonly logger = new Logger(AttemptNotes.name);
  private readonly notes: string;

  constructor(
    queue: string,
    private readonly publisher: ConfirmedPublisher,
  ) {
    this.notes = noteQueue(queue);
  }

  async read(delivery: Delivery): Promise<Progress> {
    const { message } = delivery;
    const none = { attempt: attemptOf(message.properties.headers), notBefore: 0, handedBack: 0 };
    if (!message.fields.redelivered) {
      return none;
    }
    const note = await delivery.on.channel.get(this.notes);
    if (note === false) {
      return none;
    }
    // It stays until the next one replaces it: this process may end as well.
    delivery.on.channel.nack(note, false, true);
    return progressIn(note.content, message) ?? none;
  }

  /** Without its note a message only begins again with its attempts, so a failure is no reason to stop. */
  async write({ message }: Delivery, progress: Progress): Promise<void> {
    const note = JSON.stringify({ of: identityOf(message), ...progress });
    try {
      await this.publisher.publish(DEFAULT_EXCHANGE, this.notes, Buffer.from(note), {
        contentType: 'application/json',
      });
    } catch (error) {
      this.logger.warn(`The number of attempts could not be noted: ${messageOf(error)}`);
    }
  }
}

/** Of the deliveries of a message, those after which it had not been handed back. */
export function crashesOf(message: ConsumeMessage, { handedBack }: Progress): number {
  return Math.max(0, deliveriesOf(message) - handedBack);
}

/** What the note says, if it is one, and of this message. */
function progressIn(note: Buffer, message: ConsumeMessage): Progress | undefined {
  try {
    const { of, ...progress } = JSON.parse(note.toString()) as Progress & { of: string };
    return of === identityOf(message) ? progress : undefined;
  } catch {
    return undefined;
  }
}

function identityOf({ content, fields, properties }: ConsumeMessage): string {
  return createHash('sha256')
    .update(JSON.stringify([fields.exchange, fields.routingKey, properties.messageId ?? null]))
    .update(content)
    .digest('base64');
}
