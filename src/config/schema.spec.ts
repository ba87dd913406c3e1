import { readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import { loadAppConfig } from './app.config.js';
import { ConfigurationError } from './configuration.error.js';
import type { Environment } from './environment.js';
import { appSchema } from './schema.js';

const valid = { DATABASE_URL: 'postgres://u:p@h/db', RABBITMQ_URL: 'amqp://u:p@h' };

function faultsOf(environment: Environment): readonly string[] {
  try {
    loadAppConfig({ ...valid, ...environment });
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigurationError);
    return (error as ConfigurationError).faults;
  }
  return [];
}

describe('the environment', () => {
  it.each<[keyof typeof appSchema.shape, string[]]>([
    ['DATABASE_URL', ['postgres://h/db', 'postgresql://h', 'postgres:///db?host=/run/postgresql']],
    ['RABBITMQ_URL', ['amqp://h', 'amqps://u:p@h:5671/v', 'AMQP://h', 'amqp://[::1]:5672']],
    ['SERVICE_NAME', ['a', '9', 'a.b_c-d', 'x'.repeat(100)]],
    ['PORT', ['0', '65535', '080']],
    ['CONSUMER_CONCURRENCY', ['1', '1000']],
    ['DATABASE_POOL_SIZE', ['1', '2000']],
    ['DATABASE_PREPARED_STATEMENTS', ['on', 'off']],
    ['RETRY_DELAYS', ['1', '0.001', '86400', '1,1,1', '10,5']],
    ['RETRY_JITTER', ['0', '0.2', '0.5']],
    ['CRASH_LIMIT', ['3', '20']],
    ['CONSUMER_DELAY', ['1ms', '30s', '15m', '12h', '7d', '36500d']],
    ['REPROCESSING_HORIZON', ['1ms', '60d']],
    ['PURGE_INTERVAL', ['1s', '5m', '24h', '1d']],
    ['SHUTDOWN_GRACE_SECONDS', ['1', '3600']],
    ['LOG_FORMAT', ['json', 'text']],
    ['LOG_LEVEL', ['error', 'warn', 'log', 'debug', 'verbose']],
  ])('takes for %s: %j', (variable, values) => {
    for (const value of values) {
      expect([value, faultsOf({ [variable]: value })]).toEqual([value, []]);
    }
  });

  it.each<[keyof typeof appSchema.shape, string, string[]]>([
    [
      'DATABASE_URL',
      'must be a URL like postgres://user:password@host:5432/database',
      ['hunter2', 'mysql://u:hunter2@h', 'postgres:u:hunter2@h', 'postgres:/u:hunter2@h'],
    ],
    [
      'RABBITMQ_URL',
      'must be a URL like amqp://user:password@host:5672/vhost',
      ['http://h', 'amqp:u:hunter2@h', 'amqp:/h', 'amqp://u:hun/ter2@h', 'amqp://u:hun#ter2@h'],
    ],
    [
      'SERVICE_NAME',
      'must be 1 to 100 letters, digits, dots, - or _',
      ['-a', 'a b', 'a/b', 'x'.repeat(101), 'ä', 'a\n'],
    ],
    [
      'PORT',
      'must be a whole number from 0 to 65535',
      ['x', '-1', '1.5', '65536', '1e3', '0x10', ' 1', '9'.repeat(400)],
    ],
    ['CONSUMER_CONCURRENCY', 'must be a whole number from 1 to 1000', ['0', '1001']],
    ['DATABASE_POOL_SIZE', 'must be a whole number from 1 to 2000', ['0', '2001']],
    ['DATABASE_PREPARED_STATEMENTS', 'must be on or off', ['ON', 'true', '0']],
    ['SHUTDOWN_GRACE_SECONDS', 'must be a whole number from 1 to 3600', ['0', '3601']],
    ['RETRY_DELAYS', 'must be seconds like 1,5,30', ['1,', '1;2', '1, 2', '1s', '-1', '0.0001']],
    [
      'RETRY_DELAYS',
      'must be delays of more than 0 and at most 86400 seconds',
      ['0', '1,0', '86401', '9'.repeat(400)],
    ],
    ['RETRY_JITTER', 'must be a number from 0 to 0.5', ['-0.1', '0.51', '1', '.2', '20%']],
    ['CRASH_LIMIT', 'must be a whole number from 3 to 20', ['2', '21', 'five']],
    [
      'CONSUMER_DELAY',
      'must be a duration like 30s, 12h or 7d, up to 36500d',
      ['0d', '-1d', '7', 'd', '7 days', '1.5d', ' 7d', '7D', '36501d', '1d1d', '9'.repeat(400)],
    ],
    [
      'REPROCESSING_HORIZON',
      'must be a duration like 30s, 12h or 7d, up to 36500d',
      ['0s', '-60d', '60', '1e3s'],
    ],
    ['PURGE_INTERVAL', 'must be from 1s to 1d', ['999ms', '25h', '90d']],
    ['LOG_FORMAT', 'must be json or text', ['JSON', 'xml']],
    ['LOG_LEVEL', 'must be error, warn, log, debug or verbose', ['info', 'LOG']],
  ])('refuses for %s, which %s: %j', (variable, fault, values) => {
    for (const value of values) {
      expect([value, faultsOf({ [variable]: value })]).toEqual([value, [`${variable} ${fault}`]]);
    }
  });
});

describe('.env.example', () => {
  const text = readFileSync('.env.example', 'utf8');
  /** `NAME=value`, and what is commented out because it has no fixed default: `# NAME=value`. */
  const set = parseEnv(text);
  const offered = parseEnv(text.replaceAll(/^# (?=[A-Z_]+=)/gm, ''));

  it('names every variable of the schema, and nothing else', () => {
    expect(Object.keys(offered).sort()).toEqual(Object.keys(appSchema.shape).sort());
  });

  it('shows the defaults, and a value for what has none', () => {
    const { DATABASE_URL, RABBITMQ_URL, ...defaults } = set;
    const required = { DATABASE_URL, RABBITMQ_URL };
    expect(loadAppConfig({ ...required, ...defaults })).toEqual(loadAppConfig(required));
    expect(Object.keys(defaults).sort()).toEqual(
      Object.entries(appSchema.shape)
        .filter(([, field]) => field.def.type === 'default')
        .map(([name]) => name)
        .sort(),
    );
  });

  it('offers values that the service takes', () => {
    expect(loadAppConfig(offered).poolSize).toBe(loadAppConfig(set).poolSize);
  });
});
