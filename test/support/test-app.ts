import type {
  DynamicModule,
  INestApplication,
  LoggerService,
  Provider,
  Type,
} from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { EntitySchema } from 'typeorm';
import { PlatformModule } from '../../src/app.module.js';
import { appConfig, type AppConfig } from '../../src/config/index.js';
import { serve } from '../../src/start.js';

export interface TestAppOptions {
  databaseUrl: string;
  rabbitmqUrl: string;
  controllers: Type[];
  providers?: Provider[];
  entities?: (Type | EntitySchema)[];
  imports?: (Type | DynamicModule)[];
  /** Overrides of the configuration; delays and grace are short unless set. */
  config?: Partial<AppConfig>;
}

/** A log line as the service wrote it. */
export interface LogLine {
  level: string;
  text: string;
}

/** The service in this process, wired as in production, with the test's own handlers. */
export class TestApp implements AsyncDisposable {
  constructor(
    readonly app: INestApplication,
    readonly logs: LogLine[],
  ) {}

  get<T>(token: Type<T>): T {
    return this.app.get(token, { strict: false });
  }

  /** Everything that was logged, as one text. */
  log(): string {
    return this.logs.map(({ level, text }) => `${level}: ${text}`).join('\n');
  }

  async close(): Promise<void> {
    await this.app.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/**
 * Starts the service in this process and resolves when it consumes.
 *
 * @throws what the start threw; nothing is left running then
 * @example
 * const app = cleanup.use(
 *   await createTestApp({ databaseUrl: db.url, rabbitmqUrl: broker.url, controllers: [Orders] }),
 * );
 */
export async function createTestApp(options: TestAppOptions): Promise<TestApp> {
  const logs: LogLine[] = [];
  const module = await Test.createTestingModule({
    imports: [PlatformModule, featureOf(options)],
  })
    .overrideProvider(appConfig.KEY)
    .useValue(configOf(options))
    .setLogger(collecting(logs))
    .compile();
  const app = module.createNestApplication({ abortOnError: false, logger: collecting(logs) });
  try {
    await serve(app);
  } catch (error) {
    await app.close();
    throw error;
  }
  return new TestApp(app, logs);
}

function featureOf({
  controllers,
  providers,
  entities,
  imports = [],
}: TestAppOptions): DynamicModule {
  return {
    module: class TestFeature {},
    imports: entities === undefined ? imports : [TypeOrmModule.forFeature(entities), ...imports],
    controllers,
    providers: providers ?? [],
  };
}

function configOf({ databaseUrl, rabbitmqUrl, config }: TestAppOptions): AppConfig {
  const concurrency = config?.concurrency ?? 16;
  return {
    databaseUrl,
    rabbitmqUrl,
    serviceName: 'commissions',
    eventsExchange: 'events',
    port: 0,
    concurrency,
    poolSize: concurrency + 4,
    preparedStatements: true,
    retryDelaysMs: [50, 100, 150],
    retryJitter: 0,
    crashLimit: 5,
    consumerDelayMs: 7 * 86_400_000,
    reprocessingMs: 60 * 86_400_000,
    purgeIntervalMs: 86_400_000,
    shutdownGraceMs: 5_000,
    logFormat: 'text',
    logLevel: 'verbose',
    ...config,
  };
}

function collecting(logs: LogLine[]): LoggerService {
  const at =
    (level: string) =>
    (message: unknown, ...rest: unknown[]): void => {
      const text = message instanceof Error ? (message.stack ?? message.message) : String(message);
      logs.push({ level, text: [text, ...rest.map(String)].join(' ') });
    };
  return {
    log: at('log'),
    error: at('error'),
    warn: at('warn'),
    debug: at('debug'),
    verbose: at('verbose'),
    fatal: at('fatal'),
  };
}
