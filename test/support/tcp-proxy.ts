import { connect, createServer, type Server, type Socket } from 'node:net';
import { eventually } from './eventually.js';
import { listenOn, listenOnFreePort } from './free-port.js';
import { ProxiedConnection, type Conditions } from './proxied-connection.js';
import type { Direction, Interceptor, Verdict } from './proxied-connection.js';

const defaultPorts: Record<string, number> = {
  'postgres:': 5432,
  'postgresql:': 5432,
  'amqp:': 5672,
};

/**
 * Stands between the code under test and a server, to do what networks do.
 *
 * @example
 * const proxy = cleanup.use(await createTcpProxy(db.url));
 * const service = await startService({ databaseUrl: proxy.url, rabbitmqUrl: broker.url });
 * proxy.intercept(atPoint('committed', cut));
 */
export async function createTcpProxy(targetUrl: string): Promise<TcpProxy> {
  const url = new URL(targetUrl);
  const target = { host: url.hostname, port: Number(url.port) || defaultPorts[url.protocol] };
  if (target.port === undefined) throw new Error(`No port is known for ${url.protocol} URLs.`);
  const listener = createServer({ allowHalfOpen: true });
  url.port = String(await listenOnFreePort(listener));
  url.hostname = '127.0.0.1';
  return new TcpProxy(listener, url.href, Number(url.port), (client) =>
    connect({ ...target, port: Number(target.port), allowHalfOpen: true, noDelay: true }, () =>
      client.setNoDelay(),
    ),
  );
}

export class TcpProxy implements AsyncDisposable {
  private readonly open = new Set<ProxiedConnection>();
  private readonly interceptors = new Set<Interceptor>();
  private readonly gates = new Map<Direction, Gate>();
  private latencyMs = 0;
  private cutByInterceptors = 0;

  constructor(
    private readonly listener: Server,
    /** The target's URL with this proxy's address: the same credentials, path and query. */
    readonly url: string,
    readonly port: number,
    dial: (client: Socket) => Socket,
  ) {
    listener.on('connection', (client) => this.accepted(client, dial(client)));
  }

  /** How many connections are open through the proxy. */
  get connections(): number {
    return this.open.size;
  }

  /** How many connections the interceptors have cut: a test asserts that its fault really happened. */
  get cuts(): number {
    return this.cutByInterceptors;
  }

  /** Resets every open connection, on both sides. */
  cut(): void {
    for (const connection of this.open) connection.cut();
  }

  /** Refuses new connections, as a server that is down does. Open ones stay; see `cut`. */
  refuse(): void {
    this.listener.close();
  }

  /** Takes new connections again. */
  async accept(): Promise<void> {
    if (this.listener.listening) return;
    await eventually(() => listenOn(this.listener, this.port));
  }

  /** Lets nothing pass until `resume`: connections stay open and silent, and new ones too. */
  stall(direction: Direction | 'both' = 'both'): void {
    for (const one of directions(direction))
      if (!this.gates.has(one)) this.gates.set(one, new Gate());
  }

  /** Lets through what was held back, and all that follows. */
  resume(direction: Direction | 'both' = 'both'): void {
    for (const one of directions(direction)) {
      this.gates.get(one)?.open();
      this.gates.delete(one);
    }
  }

  /** Delays everything, each way, from now on; 0 ends that. */
  delay(ms: number): void {
    this.latencyMs = ms;
  }

  /**
   * Asks `interceptor` what becomes of each chunk, until the returned function is called. With several, each
   * sees every chunk and the first that does not forward it decides. Add it before the connection is made or
   * while it is idle, so that it starts at the beginning of a protocol message.
   */
  intercept(interceptor: Interceptor): () => void {
    this.interceptors.add(interceptor);
    return () => this.interceptors.delete(interceptor);
  }

  /** Stops listening and resets every connection. */
  close(): void {
    this.listener.close();
    this.cut();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close();
  }

  private accepted(client: Socket, server: Socket): void {
    const conditions: Conditions = {
      delayMs: () => this.latencyMs,
      passable: (direction) => this.gates.get(direction)?.opened,
      judge: (...arrived) => this.judge(...arrived),
    };
    const connection = new ProxiedConnection(client, server, conditions);
    this.open.add(connection);
    for (const socket of [client, server]) {
      socket.on('close', () => {
        if (client.destroyed && server.destroyed) this.open.delete(connection);
      });
    }
  }

  private async judge(...arrived: Parameters<Interceptor>): Promise<Verdict> {
    const judged = [...this.interceptors].map(async (interceptor) => interceptor(...arrived));
    const verdicts = await Promise.all(judged);
    const verdict = verdicts.find((one) => one !== 'forward') ?? 'forward';
    if (verdict === 'cut' || verdict === 'cut-after') this.cutByInterceptors += 1;
    return verdict;
  }
}

class Gate {
  open: () => void = () => undefined;
  readonly opened = new Promise<void>((resolve) => {
    this.open = resolve;
  });
}

function directions(direction: Direction | 'both'): Direction[] {
  return direction === 'both' ? ['toServer', 'toClient'] : [direction];
}
