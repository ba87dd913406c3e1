import { randomBytes } from 'node:crypto';
import type { Channel, GetMessage, MessageProperties, Options } from 'amqplib';
import { createVhost, deleteVhost, segment } from './broker-admin.js';
import { ConfirmedPublisher, type Body } from './broker-publisher.js';
import { HarnessConnection } from './harness-connection.js';
import { ManagementApi } from './management-api.js';
import { temporaryName } from './names.js';
import { server } from './servers.js';

/** A message that was taken from a queue, or looked at. */
export interface TakenMessage {
  body: Buffer;
  headers: Record<string, unknown>;
  properties: MessageProperties;
  exchange: string;
  routingKey: string;
  redelivered: boolean;
}

export interface Depth {
  ready: number;
  consumers: number;
}

/** Where a broker is; both URLs carry the credentials of an administrator. */
export interface BrokerAddress {
  url: string;
  managementUrl: string;
}

/** What a user may do, each by a regular expression of names; `''` is nothing. */
export interface Permissions {
  configure: string;
  write: string;
  read: string;
}

/**
 * Creates a vhost of its own for a spec file, with a user of its own whose URL the code under test gets: on the
 * shared broker, or on one of the spec's own.
 *
 * @example const broker = cleanup.use(await createTestBroker());
 */
export async function createTestBroker(on?: BrokerAddress): Promise<TestBroker> {
  const api = new ManagementApi(on?.managementUrl ?? server('rabbitmqManagementUrl'));
  const vhost = temporaryName();
  const url = new URL(on?.url ?? server('rabbitmqUrl'));
  url.pathname = `/${vhost}`;
  const password = randomBytes(12).toString('hex');
  await createVhost(api, vhost, password, decodeURIComponent(url.username));
  const administrator = url.href;
  url.username = vhost;
  url.password = password;
  return new TestBroker(vhost, url.href, administrator, api);
}

export class TestBroker implements AsyncDisposable {
  // Two, because a broker in an alarm stops listening to connections that publish.
  private readonly publishing: HarnessConnection;
  private readonly asking: HarnessConnection;
  private readonly publisher: ConfirmedPublisher;

  constructor(
    readonly vhost: string,
    /** For the code under test. The harness's own connections belong to another user. */
    readonly url: string,
    administrator: string,
    private readonly api: ManagementApi,
  ) {
    this.publishing = new HarnessConnection(administrator);
    this.asking = new HarnessConnection(administrator);
    this.publisher = new ConfirmedPublisher(this.publishing);
  }

  /**
   * Publishes persistently and returns when the broker has confirmed. Throws when no queue takes the message.
   * The message id is random unless given.
   */
  publish(
    exchange: string,
    routingKey: string,
    body: Body,
    options?: Options.Publish,
  ): Promise<void> {
    return this.publisher.publish(exchange, routingKey, body, options);
  }

  sendToQueue(queue: string, body: Body, options?: Options.Publish): Promise<void> {
    return this.publisher.publish('', queue, body, options);
  }

  /** The queue itself answers: exact, and as of now. Throws when there is no such queue. */
  async depth(queue: string): Promise<Depth> {
    const { messageCount, consumerCount } = await this.withChannel((channel) =>
      channel.checkQueue(queue),
    );
    return { ready: messageCount, consumers: consumerCount };
  }

  /**
   * Messages that consumers hold, as of up to five seconds ago: no protocol asks a quorum queue for this.
   * For the exact number at this moment watch the consumer's connection with `watchSettlements`; for "all is
   * settled" stop the consumer, which makes what it held ready again, and read the depth.
   */
  async unacked(queue: string): Promise<number> {
    const queues = await this.api.get<{ name: string; messages_unacknowledged?: number }[]>(
      `/queues/${this.vhost}?disable_stats=true&enable_queue_totals=true`,
    );
    return queues.find(({ name }) => name === queue)?.messages_unacknowledged ?? 0;
  }

  /** Takes every ready message out of a queue, oldest first. */
  async drainQueue(queue: string): Promise<TakenMessage[]> {
    return this.withChannel(async (channel) => {
      const taken = await getUpTo(channel, queue, Infinity);
      if (taken.length > 0) channel.ackAll();
      return taken.map(describe);
    });
  }

  /**
   * Looks at the first `count` ready messages and puts them back. The broker counts this as a delivery, so
   * it can end a message in a queue with a delivery limit.
   */
  async peek(queue: string, count = 1): Promise<TakenMessage[]> {
    return this.withChannel(async (channel) => {
      // Closing the channel returns them to the head of the queue; a nack moves them to a quorum queue's tail.
      const taken = await getUpTo(channel, queue, count);
      return taken.map(describe);
    });
  }

  /** Deletes a queue, as an operator does; its consumers get a cancel. */
  async deleteQueue(queue: string): Promise<void> {
    await this.withChannel((channel) => channel.deleteQueue(queue));
  }

  /** How many connections the code under test has, as of some milliseconds ago. */
  async connections(): Promise<number> {
    return (await this.api.get<unknown[]>(`/connections/username/${this.vhost}`)).length;
  }

  /** Closes every connection of the code under test at once, as an operator does. */
  async closeAllConnections(reason = 'closed by a test'): Promise<void> {
    await this.api.delete(`/connections/username/${this.vhost}`, { 'x-reason': reason });
  }

  /** Replaces what the user of the code under test may do; without an argument it may not even connect. */
  async permit(permissions?: Permissions): Promise<void> {
    const path = `/permissions/${this.vhost}/${this.vhost}`;
    await (permissions ? this.api.put(path, permissions) : this.api.delete(path));
  }

  /** Changes the password of the code under test; its open connections stay. */
  async setPassword(password: string): Promise<void> {
    await this.api.put(`/users/${this.vhost}`, { password, tags: '' });
  }

  /** Runs `work` on a channel of its own, for all that has no method here. */
  async withChannel<T>(work: (channel: Channel) => Promise<T>): Promise<T> {
    const channel = await this.asking.createChannel();
    let closed = false;
    channel.on('close', () => (closed = true));
    // The call that broke the channel reports the error; without a listener it would also end the process.
    channel.on('error', () => (closed = true));
    try {
      return await work(channel);
    } finally {
      if (!closed) await channel.close();
    }
  }

  /** Deletes the vhost with all that is in it, and its user. */
  async drop(): Promise<void> {
    await Promise.all([this.publishing.close(), this.asking.close()]);
    await deleteVhost(this.api, segment(this.vhost));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.drop();
  }
}

async function getUpTo(channel: Channel, queue: string, count: number): Promise<GetMessage[]> {
  const taken: GetMessage[] = [];
  while (taken.length < count) {
    const message = await channel.get(queue);
    if (message === false) break;
    taken.push(message);
  }
  return taken;
}

function describe({ content, properties, fields }: GetMessage): TakenMessage {
  return {
    body: content,
    headers: { ...properties.headers },
    properties,
    exchange: fields.exchange,
    routingKey: fields.routingKey,
    redelivered: fields.redelivered,
  };
}
