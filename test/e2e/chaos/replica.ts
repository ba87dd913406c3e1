import {
  createTcpProxy,
  eventually,
  startService,
  type Cleanup,
  type ServiceProcess,
  type TcpProxy,
} from '../../support/index.js';

export interface Urls {
  databaseUrl: string;
  rabbitmqUrl: string;
}

/** One process of the service, behind proxies of its own. Another takes its place when it ends, as a platform does. */
export class Replica implements AsyncDisposable {
  private service: ServiceProcess | undefined;

  private constructor(
    readonly postgres: TcpProxy,
    readonly rabbit: TcpProxy,
    private readonly settings: Record<string, string>,
  ) {}

  static async create(
    cleanup: Cleanup,
    { databaseUrl, rabbitmqUrl }: Urls,
    settings: Record<string, string>,
  ): Promise<Replica> {
    const postgres = cleanup.use(await createTcpProxy(databaseUrl));
    const rabbit = cleanup.use(await createTcpProxy(rabbitmqUrl));
    const replica = cleanup.use(new Replica(postgres, rabbit, settings));
    await replica.start();
    return replica;
  }

  /** Ends as a crash does, and begins again. */
  async crash(): Promise<void> {
    await this.end('SIGKILL');
    await this.start();
  }

  /** Ends as a deployment does, which waits until the process before has come up, and begins again. */
  async redeploy(): Promise<void> {
    await this.ready();
    await this.stop();
    await this.start();
  }

  /** Throws when it does not end by itself and with 0. */
  async stop(): Promise<void> {
    const { service } = this;
    this.service = undefined;
    const exit = await service?.stop(30_000);
    if (exit?.code !== 0) {
      throw new Error(`Ended with ${JSON.stringify(exit)}:\n${service?.output()}`);
    }
  }

  /** A process that ended while it started, because what it needs had just been cut off, has a successor. */
  async ready(): Promise<void> {
    await eventually(() => this.service?.ready(5_000), { timeoutMs: 60_000 });
  }

  output(): string {
    return this.service?.output() ?? '';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    const { service } = this;
    this.service = undefined;
    await service?.kill(signal);
  }

  private async start(): Promise<void> {
    const service = await startService({
      databaseUrl: this.postgres.url,
      rabbitmqUrl: this.rabbit.url,
      waitReady: false,
      env: this.settings,
    });
    this.service = service;
    void service.exited.then(() => (this.service === service ? this.start() : undefined));
  }
}
