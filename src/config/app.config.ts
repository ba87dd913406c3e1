import { registerAs } from '@nestjs/config';
import { appSchema, databaseSchema } from './schema.js';
import { parseEnvironment, processEnvironment, type Environment } from './environment.js';

export interface AppConfig {
  databaseUrl: string;
  rabbitmqUrl: string;
  /** Names the service's queue and scopes its keys. */
  serviceName: string;
  eventsExchange: string;
  port: number;
  /** Messages in work at the same time in this process. */
  concurrency: number;
  /** PostgreSQL connections of this process. */
  poolSize: number;
  /** Whether statements are prepared by name, which PgBouncer before 1.21 cannot carry. */
  preparedStatements: boolean;
  /** The wait after each failed attempt, in milliseconds; after the last, dead letter. */
  retryDelaysMs: number[];
  /** How far a retry's delay may be from the scheduled one, as a part of it. */
  retryJitter: number;
  /** Deliveries that may end with the process before the message is dead-lettered. */
  crashLimit: number;
  /** How long the service may be down, and a dead letter may wait, in milliseconds. */
  consumerDelayMs: number;
  /** How far back messages are published again, in milliseconds. */
  reprocessingMs: number;
  /** From one purge of expired keys to the next, in milliseconds. */
  purgeIntervalMs: number;
  /** How long a stop waits for started handlers, in milliseconds. */
  shutdownGraceMs: number;
  logFormat: 'json' | 'text' | undefined;
  logLevel: 'error' | 'warn' | 'log' | 'debug' | 'verbose';
}

/** Connections beside one for each handler: health checks, and work outside the transaction. */
const SPARE_CONNECTIONS = 4;

/** @throws ConfigurationError */
export function loadAppConfig(environment: Environment): AppConfig {
  const env = parseEnvironment(appSchema, environment);
  return {
    databaseUrl: env.DATABASE_URL,
    rabbitmqUrl: env.RABBITMQ_URL,
    serviceName: env.SERVICE_NAME,
    eventsExchange: env.EVENTS_EXCHANGE,
    port: env.PORT,
    concurrency: env.CONSUMER_CONCURRENCY,
    poolSize: env.DATABASE_POOL_SIZE ?? env.CONSUMER_CONCURRENCY + SPARE_CONNECTIONS,
    preparedStatements: env.DATABASE_PREPARED_STATEMENTS === 'on',
    retryDelaysMs: env.RETRY_DELAYS,
    retryJitter: env.RETRY_JITTER,
    crashLimit: env.CRASH_LIMIT,
    consumerDelayMs: env.CONSUMER_DELAY,
    reprocessingMs: env.REPROCESSING_HORIZON,
    purgeIntervalMs: env.PURGE_INTERVAL,
    shutdownGraceMs: env.SHUTDOWN_GRACE_SECONDS,
    logFormat: env.LOG_FORMAT,
    logLevel: env.LOG_LEVEL,
  };
}

/** What the migration program needs: it runs where there may be no broker. */
export function loadDatabaseUrl(environment: Environment): string {
  return parseEnvironment(databaseSchema, environment).DATABASE_URL;
}

let loaded: AppConfig | undefined;

/**
 * The configuration of this process, read once. Injected as `@Inject(appConfig.KEY) config: AppConfig`.
 *
 * @throws ConfigurationError
 */
export const appConfig = registerAs(
  'app',
  (): AppConfig => (loaded ??= loadAppConfig(processEnvironment())),
);
