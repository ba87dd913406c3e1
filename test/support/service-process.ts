import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { OutputTail } from './output-tail.js';
import { projectRoot } from './project.js';

export interface ServiceOptions {
  databaseUrl: string;
  rabbitmqUrl: string;
  serviceName?: string;
  /** More of the environment. Nothing else of the test's own environment reaches the service. */
  env?: Record<string, string>;
  /** Whether to return only when the service is ready; true unless set. */
  waitReady?: boolean;
}

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

const running = new Set<ServiceProcess>();

// The net under a test that failed before it stopped its service. Registered when a spec file loads this
// module, because Jest's workers do not emit "exit".
if (typeof afterAll === 'function') {
  afterAll(async () => {
    await Promise.all([...running].map((service) => service.kill()));
  });
}

/**
 * Starts the built service as a process of its own, on a free port.
 *
 * @example const service = cleanup.use(await startService({ databaseUrl: db.url, rabbitmqUrl: broker.url }));
 */
export async function startService(options: ServiceOptions): Promise<ServiceProcess> {
  const port = await freePort();
  const child = spawn(process.execPath, ['dist/src/main.js'], {
    cwd: projectRoot,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: environment(options, port),
  });
  const service = new ServiceProcess(child, `http://127.0.0.1:${port}`);
  running.add(service);
  void service.exited.finally(() => running.delete(service));
  if (options.waitReady ?? true) {
    try {
      await service.ready();
    } catch (error) {
      await service.kill();
      throw error;
    }
  }
  return service;
}

export class ServiceProcess implements AsyncDisposable {
  /** Settles when the process has ended and all its output has arrived. */
  readonly exited: Promise<Exit>;
  private readonly tail = new OutputTail();
  private exit: Exit | undefined;

  constructor(
    private readonly child: ChildProcess,
    /** Where its HTTP endpoints are. */
    readonly url: string,
  ) {
    this.tail.read(child.stdout);
    this.tail.read(child.stderr);
    this.exited = once(child, 'close').then(([code, signal]) => {
      this.exit = { code, signal };
      return this.exit;
    });
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error('The service could not be started.');
    return this.child.pid;
  }

  /** The last of what it wrote to stdout and stderr. */
  output(): string {
    return this.tail.text();
  }

  /** Waits until `GET /health/ready` answers 200. Throws with the output when the process ends before. */
  async ready(timeoutMs = 20_000): Promise<void> {
    await eventually(
      async () => {
        if (this.exit) return;
        const response = await fetch(`${this.url}/health/ready`);
        if (!response.ok) throw new Error(`Not ready: ${response.status} ${await response.text()}`);
      },
      { timeoutMs },
    ).catch((error: unknown) => {
      throw new Error(`The service is not ready. Its output:\n${this.output()}`, { cause: error });
    });
    if (this.exit) {
      throw new Error(
        `The service ended, ${JSON.stringify(this.exit)}. Its output:\n${this.output()}`,
      );
    }
  }

  /** Sends a signal without waiting. */
  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Sends a signal and waits for the end; a SIGKILL unless told, as a crash or the OOM killer does. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<Exit> {
    this.signal(signal);
    return this.exited;
  }

  /** Asks it to stop (SIGTERM) and waits. Throws with the output when it does not stop in time. */
  async stop(timeoutMs = 20_000): Promise<Exit> {
    this.signal('SIGTERM');
    const timer = new AbortController();
    const exit = await Promise.race([
      this.exited,
      sleep(timeoutMs, undefined, { signal: timer.signal }).catch(() => undefined),
    ]);
    timer.abort();
    if (exit) return exit;
    await this.kill();
    throw new Error(`The service did not stop in ${timeoutMs} ms. Its output:\n${this.output()}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }
}

function environment(options: ServiceOptions, port: number): Record<string, string | undefined> {
  return {
    PATH: process.env.PATH,
    DATABASE_URL: options.databaseUrl,
    RABBITMQ_URL: options.rabbitmqUrl,
    PORT: String(port),
    ...(options.serviceName === undefined ? {} : { SERVICE_NAME: options.serviceName }),
    ...options.env,
  };
}
