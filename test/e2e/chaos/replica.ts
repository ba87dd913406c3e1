import {
  createTcpProxy,
  startService,
  type Cleanup,
  type ServiceProcess,
  type TcpProxy,
} from '../../support/index.js';

export interface Urls {
  databaseUrl: string;
  rabbitmqUrl: string;
}

/** One process of the service, behind proxies of its own; another one takes its place when it ends. */
export class Replica implements AsyncDisposable {
  private service: ServiceProcess | undefined;

  private constructor(
    readonly postgres: TcpProxy,
    readonly rabbit: TcpProxy,
  ) {}

  static async create(cleanup: Cleanup, { databaseUrl, rabbitmqUrl }: Urls): Promise<Replica> {
    const postgres = cleanup.use(await createTcpProxy(databaseUrl));
    const rabbit = cleanup.use(await createTcpProxy(rabbitmqUrl));
    const replica = cleanup.use(new Replica(postgres, rabbit));
    await replica.start();
    return replica;
  }

  /** Ends as a crash does, and begins again. */
  async crash(): Promise<void> {
    await this.service?.kill();
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
    const exit = await this.service?.stop(30_000);
    if (exit?.code !== 0) {
      throw new Error(`Ended with ${JSON.stringify(exit)}:\n${this.service?.output()}`);
    }
  }

  ready(): Promise<void> | undefined {
    return this.service?.ready(60_000);
  }

  output(): string {
    return this.service?.output() ?? '';
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.service?.kill();
  }

  private async start(): Promise<void> {
    this.service = await startService({
      databaseUrl: this.postgres.url,
      rabbitmqUrl: this.rabbit.url,
      waitReady: false,
      env: {
        CONSUMER_CONCURRENCY: '8',
        RETRY_DELAYS: '0.1,0.2,0.5,1,1',
        RETRY_JITTER: '0',
        LOG_LEVEL: 'warn',
      },
    });
  }
}
