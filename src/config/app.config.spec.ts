import { loadAppConfig, loadDatabaseUrl } from './app.config.js';
import { ConfigurationError } from './configuration.error.js';
import type { Environment } from './environment.js';

const DATABASE_URL = 'postgres://u:p@localhost/db';
const RABBITMQ_URL = 'amqp://u:p@localhost';
const load = (more: Environment = {}) => loadAppConfig({ DATABASE_URL, RABBITMQ_URL, ...more });

describe('loadAppConfig', () => {
  it('needs two URLs and has a default for everything else', () => {
    expect(load()).toEqual({
      databaseUrl: DATABASE_URL,
      rabbitmqUrl: RABBITMQ_URL,
      serviceName: 'commissions',
      eventsExchange: 'events',
      port: 3000,
      concurrency: 16,
      poolSize: 20,
      preparedStatements: true,
      retryDelaysMs: [1_000, 5_000, 30_000, 120_000, 600_000],
      retryJitter: 0.2,
      crashLimit: 5,
      consumerDelayMs: 7 * 86_400_000,
      reprocessingMs: 60 * 86_400_000,
      purgeIntervalMs: 300_000,
      shutdownGraceMs: 25_000,
      logFormat: undefined,
      logLevel: 'log',
    });
  });

  it('takes every variable', () => {
    const config = load({
      SERVICE_NAME: 'shop-2.sales_eu',
      EVENTS_EXCHANGE: 'shop',
      PORT: '0',
      CONSUMER_CONCURRENCY: '1',
      DATABASE_POOL_SIZE: '7',
      DATABASE_PREPARED_STATEMENTS: 'off',
      RETRY_DELAYS: '0.25,1',
      RETRY_JITTER: '0',
      CRASH_LIMIT: '3',
      CONSUMER_DELAY: '12h',
      REPROCESSING_HORIZON: '30d',
      PURGE_INTERVAL: '1h',
      SHUTDOWN_GRACE_SECONDS: '5',
      LOG_FORMAT: 'json',
      LOG_LEVEL: 'debug',
    });
    expect(config).toEqual({
      databaseUrl: DATABASE_URL,
      rabbitmqUrl: RABBITMQ_URL,
      serviceName: 'shop-2.sales_eu',
      eventsExchange: 'shop',
      port: 0,
      concurrency: 1,
      poolSize: 7,
      preparedStatements: false,
      retryDelaysMs: [250, 1_000],
      retryJitter: 0,
      crashLimit: 3,
      consumerDelayMs: 43_200_000,
      reprocessingMs: 30 * 86_400_000,
      purgeIntervalMs: 3_600_000,
      shutdownGraceMs: 5_000,
      logFormat: 'json',
      logLevel: 'debug',
    });
  });

  it('makes the pool fit the concurrency', () => {
    expect(load({ CONSUMER_CONCURRENCY: '50' }).poolSize).toBe(54);
  });

  it('reports every missing variable at once', () => {
    expect(() => loadAppConfig({})).toThrow(
      expect.objectContaining({ faults: ['DATABASE_URL is not set', 'RABBITMQ_URL is not set'] }),
    );
  });
});

describe('loadDatabaseUrl', () => {
  it('needs no broker', () => {
    expect(loadDatabaseUrl({ DATABASE_URL })).toBe(DATABASE_URL);
    expect(() => loadDatabaseUrl({ RABBITMQ_URL })).toThrow(ConfigurationError);
  });
});
