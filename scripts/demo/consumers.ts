import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { freePort } from '../../test/support/free-port.js';
import { projectRoot } from '../../test/support/project.js';
import { ServiceProcess } from '../../test/support/service-process.js';
import { lastLines } from '../services/processes.js';
import { RETRY_DELAYS, type BrokerPlace } from './broker.js';
import { DemoError } from './errors.js';

/** Their numbers, by which people tell them apart. */
export const CONSUMERS = [1, 2];
const CONCURRENCY = '16';
const READY_MS = 40_000;

/** What `node` is told to run: the service as it is deployed, or the consumer that people write first. */
const PROGRAMS = {
  service: [join(projectRoot, 'dist/src/main.js')],
  naive: ['--import', 'tsx', join(import.meta.dirname, 'naive-consumer.ts')],
} as const;

/** A demo that is killed cannot stop its consumers; they notice that the pipe to it is gone. */
const END_WITH_THE_DEMO =
  'data:text/javascript,process.once("disconnect",()=>process.kill(process.pid,"SIGKILL"))';

/** The consumer processes of a run. One that ends by itself is a failure of the demo. */
export class Consumers {
  private readonly processes = new Map<number, ServiceProcess>();
  private readonly failures: DemoError[] = [];

  constructor(
    private readonly program: keyof typeof PROGRAMS,
    private readonly databaseUrl: string,
    private readonly place: BrokerPlace,
  ) {}

  /** Starts consumer `number` and waits until it is ready. */
  async start(number: number): Promise<void> {
    const consumer = await this.spawn();
    this.processes.set(number, consumer);
    void consumer.exited.then(({ code, signal }) => {
      if (this.processes.get(number) !== consumer) return;
      const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
      this.failures.push(failure(`Consumer ${number} ended by itself, ${how}.`, consumer));
    });
    try {
      await consumer.ready(READY_MS);
    } catch (error) {
      throw failure(`Consumer ${number} did not become ready.`, consumer, error);
    }
  }

  /** Kills consumer `number` as a crash does; returns the id that its process had. */
  async crash(number: number): Promise<number> {
    const consumer = this.processes.get(number)!;
    this.processes.delete(number);
    await consumer.kill('SIGKILL');
    return consumer.pid;
  }

  /** Throws when a consumer has ended by itself. */
  check(): void {
    if (this.failures[0]) throw this.failures[0];
  }

  /** Asks them to stop, so that they finish what they have started. */
  async stop(): Promise<void> {
    const processes = [...this.processes.values()];
    this.processes.clear();
    await Promise.all(processes.map((consumer) => consumer.stop()));
  }

  async kill(): Promise<void> {
    const processes = [...this.processes.values()];
    this.processes.clear();
    await Promise.all(processes.map((consumer) => consumer.kill('SIGKILL')));
  }

  /** The end of what each has said, for a diagnosis. */
  lastWords(): string {
    return [...this.processes]
      .map(([number, consumer]) => `Consumer ${number} said last:\n${quote(consumer)}`)
      .join('\n');
  }

  private async spawn(): Promise<ServiceProcess> {
    const port = await freePort();
    const child = spawn(
      process.execPath,
      ['--import', END_WITH_THE_DEMO, ...PROGRAMS[this.program]],
      {
        // Not the root of the checkout: a .env there is for the reader's own service.
        cwd: import.meta.dirname,
        env: this.environment(port),
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
        detached: true, // Ctrl-C is for the demo, which then stops them in order
      },
    );
    return new ServiceProcess(child, `http://127.0.0.1:${port}`);
  }

  private environment(port: number): NodeJS.ProcessEnv {
    return {
      PATH: process.env.PATH,
      DATABASE_URL: this.databaseUrl,
      RABBITMQ_URL: this.place.url,
      SERVICE_NAME: this.place.queue,
      EVENTS_EXCHANGE: this.place.exchange,
      PORT: String(port),
      CONSUMER_CONCURRENCY: process.env.CONSUMER_CONCURRENCY || CONCURRENCY,
      RETRY_DELAYS: RETRY_DELAYS.join(','),
      RETRY_JITTER: '0',
      SHUTDOWN_GRACE_SECONDS: '15',
      LOG_LEVEL: 'warn',
      LOG_FORMAT: 'text',
      NO_COLOR: '1',
    };
  }
}

function failure(what: string, consumer: ServiceProcess, cause?: unknown): DemoError {
  return new DemoError(`${what} It said last:\n${quote(consumer)}`, { cause });
}

const quote = (consumer: ServiceProcess): string =>
  lastLines(consumer.output() || '(nothing)').replaceAll(/^/gm, '  ');
