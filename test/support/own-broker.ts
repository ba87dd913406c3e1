import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { untilItAnswers } from '../../scripts/services/answers.js';
import { rabbitmq } from '../../scripts/services/rabbitmq.js';
import type { BrokerAddress } from './broker.js';
import { chooseWay, type BrokerWay } from './own-broker-ways.js';

export interface OwnBrokerOptions {
  /**
   * How long a consumer may hold a message before the broker closes its channel, in milliseconds. The broker
   * looks four times in that time instead of once a minute.
   */
  consumerTimeoutMs?: number;
}

/** Each with what sets it off and what ends it, by rabbitmqctl. */
const alarms = {
  memory: {
    on: ['set_vm_memory_high_watermark', '0'],
    off: ['set_vm_memory_high_watermark', '0.4'],
  },
  disk: {
    on: ['set_disk_free_limit', '1000000GB'],
    off: ['set_disk_free_limit', '1MB'],
  },
} as const;

/**
 * Starts a RabbitMQ node of a spec's own, for faults that would hurt every spec on the shared one. It takes
 * about five seconds, so specs that need one share it within a file. It is gone with its data when the spec
 * has ended, also when the test process is killed.
 *
 * @throws Error that says what to install, where neither RabbitMQ's package nor Docker is
 * @example
 * const node = cleanup.use(await startOwnBroker());
 * const broker = cleanup.use(await createTestBroker(node));
 * await node.alarm('memory');
 */
export async function startOwnBroker({
  consumerTimeoutMs,
}: OwnBrokerOptions = {}): Promise<OwnBroker> {
  // The second has no name in rabbitmq.conf. Both are milliseconds.
  const timeout =
    consumerTimeoutMs === undefined
      ? ''
      : `-rabbit consumer_timeout ${consumerTimeoutMs} ` +
        `-rabbit channel_tick_interval ${Math.ceil(consumerTimeoutMs / 4)}`;
  const node = new OwnBroker(await chooseWay(timeout));
  try {
    await node.start();
    return node;
  } catch (error) {
    await node[Symbol.asyncDispose]();
    throw error;
  }
}

export class OwnBroker implements AsyncDisposable, BrokerAddress {
  /** Of an administrator. The code under test gets the URL of a `createTestBroker(node)`. */
  readonly url: string;
  readonly managementUrl: string;
  private readonly remover: ChildProcess;

  constructor(private readonly way: BrokerWay) {
    const { rabbitmqUrl = '', rabbitmqManagementUrl = '' } = rabbitmq.urls(way.access);
    this.url = rabbitmqUrl;
    this.managementUrl = rabbitmqManagementUrl;
    this.remover = removeWhenThisProcessEnds(way);
  }

  /** Starts the stopped node, with its data, at the same ports; returns when it answers. */
  async start(): Promise<void> {
    const { ended, logFile } = await this.way.launch();
    const failure = await untilItAnswers(
      rabbitmq,
      { rabbitmqUrl: this.url, rabbitmqManagementUrl: this.managementUrl },
      { timeoutMs: 60_000, hopeless: ended, log: () => undefined, waitingFor: '' },
    );
    if (failure !== undefined) throw new Error(`${failure}\nIts log is ${logFile}.`);
  }

  /** Stops the node, or kills it with SIGKILL as a crash does. Its data stay. */
  stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    return this.way.stop(signal);
  }

  /**
   * Stops the node and starts it again; returns when it answers. A node that is asked to stop takes six
   * seconds to, also by `control('stop_app')`; a killed one none.
   */
  async restart(signal?: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await this.stop(signal);
    await this.start();
  }

  /** Sets off a resource alarm: until it is cleared, the broker takes nothing from connections that publish. */
  async alarm(kind: keyof typeof alarms): Promise<void> {
    await this.control(...alarms[kind].on);
  }

  async clearAlarm(): Promise<void> {
    for (const { off } of Object.values(alarms)) await this.control(...off);
  }

  /** Runs rabbitmqctl and returns what it printed. It takes about a second. */
  control(...args: string[]): Promise<string> {
    return this.way.control(args);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const removed = once(this.remover, 'close');
    this.remover.stdin?.end();
    await removed;
  }
}

/**
 * A process of its own that waits for the end of its input, which comes when this process closes it or ends,
 * however it ends. The only way in which a server is removed, so that every run tests it.
 */
export function removeWhenThisProcessEnds({
  removal: [script, subject],
}: Pick<BrokerWay, 'removal'>): ChildProcess {
  const remover = spawn('sh', ['-c', `cat >/dev/null\n${script}`, subject], {
    cwd: '/',
    // Not in the group that Ctrl-C ends.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  remover.unref();
  (remover.stdin as Socket).unref();
  return remover;
}
