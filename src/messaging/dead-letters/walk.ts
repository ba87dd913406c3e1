import { connect, type Channel, type ChannelModel, type ConsumeMessage } from 'amqplib';
import { atMost } from '../at-most.js';
import { CLOSE_TIMEOUT_MS, HEARTBEAT_SECONDS } from '../messaging.options.js';
import { lockLetters, untilReturned } from './walk-lock.js';

/** Letters that are in this process's memory and not yet looked at, at most. */
const WINDOW = 1_000;
/** Longer than a delivery takes: then the queue is asked whether there is more. */
const IDLE_MS = 1_000;

/**
 * Goes over the dead letters once, oldest first. What is not acknowledged stays with the broker, counted as
 * taken, and is back in its place when the walk has closed, however it ends.
 *
 * On a connection of its own: consumers and publisher of the service do not notice.
 */
export class Walk {
  private readonly arrived: ConsumeMessage[] = [];
  private wake: () => void = () => undefined;
  private ended: Error | undefined;
  private tag: string | undefined;
  private acknowledged = false;
  private windows = 0;
  private left = 0;

  private constructor(
    private readonly connection: ChannelModel,
    private readonly channel: Channel,
    private readonly queue: string,
    /** Letters at the start. Those that come later are not part of the walk. */
    readonly count: number,
  ) {
    connection.on('error', (error: Error) => this.end(error));
    connection.once('close', () => this.end(new Error('the connection has closed')));
    channel.on('error', (error: Error) => this.end(error));
    channel.once('close', () => this.end(new Error('the channel has closed')));
  }

  /**
   * @throws DeadLettersBusyError while somebody else walks
   * @throws NoDeadLetterQueueError
   */
  static async open(url: string, queue: string): Promise<Walk> {
    const address = new URL(url);
    address.searchParams.set('heartbeat', String(HEARTBEAT_SECONDS));
    const connection = await connect(address.href);
    // Unheard, it would end the process. Whoever waits for an answer gets it as well.
    connection.on('error', () => undefined);
    try {
      const count = await lockLetters(connection, queue);
      return new Walk(connection, await connection.createChannel(), queue, count);
    } catch (error) {
      await atMost(
        CLOSE_TIMEOUT_MS,
        connection.close().catch(() => undefined),
      );
      throw error;
    }
  }

  /**
   * Each letter is to be given to `acknowledge` or `leave`, at any time before the next is asked for or later.
   *
   * @throws what ended the connection
   */
  async *letters(): AsyncGenerator<ConsumeMessage, void, undefined> {
    for (let seen = 0; seen < this.count; seen++) {
      const next = await this.next();
      if (next === undefined) {
        return;
      }
      yield next;
    }
  }

  /** Removes a letter. @throws IllegalOperationError when the channel is gone */
  acknowledge(message: ConsumeMessage): void {
    this.channel.ack(message);
    this.acknowledged = true;
  }

  /** Leaves a letter in its place. */
  leave(): void {
    this.left++;
    this.wake();
  }

  /** What was not acknowledged is in its place again. */
  async close(): Promise<void> {
    await atMost(CLOSE_TIMEOUT_MS, this.disconnect());
  }

  private async disconnect(): Promise<void> {
    try {
      await this.flush();
      await this.channel.close();
      // Still locked: nobody counts letters that are on their way back.
      await untilReturned(this.connection, this.queue);
      await this.connection.close();
    } catch {
      // The connection has ended, or the broker still holds letters: without it they come back as well.
      await closed(this.connection);
    }
  }

  /**
   * A quorum queue's client in the broker holds acknowledgements back when there are many, and forgets them
   * with the channel. A get waits for what was sent, which lets the rest go; the second one waits for that.
   * What they get, if anything, returns with the others.
   */
  private async flush(): Promise<void> {
    if (this.acknowledged) {
      await this.channel.get(this.queue);
      await this.channel.get(this.queue);
    }
  }

  /** Undefined when there are no more: somebody has purged the queue. */
  private async next(): Promise<ConsumeMessage | undefined> {
    for (;;) {
      const message = this.arrived.shift();
      if (message !== undefined) {
        return message;
      }
      if (this.ended !== undefined) {
        throw this.ended;
      }
      if (this.tag === undefined || this.left === WINDOW) {
        await this.openWindow();
      } else if (!(await this.hasArrived()) && (await this.isEmpty())) {
        return undefined;
      }
    }
  }

  /**
   * What is left uses its consumer's prefetch up, so another consumer takes over. The one before is not
   * cancelled: with acknowledgements on their way, RabbitMQ 3.10 would then move letters to the end.
   */
  private async openWindow(): Promise<void> {
    this.left = 0;
    await this.channel.prefetch(WINDOW, false);
    // In this order the broker takes letters back, from up to 32 consumers; gets, whose tags are numbers, last.
    this.tag = `!dead-letters.${String(++this.windows).padStart(6, '0')}`;
    await this.channel.consume(this.queue, (message) => this.receive(message), {
      consumerTag: this.tag,
    });
  }

  private receive(message: ConsumeMessage | null): void {
    if (message === null) {
      this.end(new Error(`the queue ${this.queue} was deleted`));
    } else {
      this.arrived.push(message);
      this.wake();
    }
  }

  /** False after a second without anything. */
  private async hasArrived(): Promise<boolean> {
    const arrival = new Promise<true>((resolve) => {
      this.wake = () => resolve(true);
    });
    if (this.arrived.length > 0 || this.ended !== undefined) {
      return true;
    }
    return (await atMost(IDLE_MS, arrival)) ?? false;
  }

  private async isEmpty(): Promise<boolean> {
    const { messageCount } = await this.channel.checkQueue(this.queue);
    return messageCount === 0 && this.arrived.length === 0;
  }

  private end(error: Error): void {
    this.ended ??= error;
    this.wake();
  }
}

/** Also of a connection that has ended already, for which the client throws. */
async function closed(connection: ChannelModel): Promise<void> {
  try {
    await connection.close();
  } catch {
    // As wanted.
  }
}
