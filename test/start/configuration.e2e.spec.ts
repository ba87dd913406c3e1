import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  createTestBroker,
  createTestDatabase,
  freePort,
  useCleanup,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';
import { runToEnd, type Ended } from './process.js';

const SECRET = 'hunter2-pa/ss@word';
const cleanup = useCleanup();
let db: TestDatabase;
let broker: TestBroker;
let folder: string;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker());
  folder = await mkdtemp(join(tmpdir(), 'start-'));
  cleanup.defer(() => rm(folder, { recursive: true }));
});

async function file(name: string, content: string): Promise<string> {
  await writeFile(join(folder, name), content);
  return join(folder, name);
}

/** Starts, and stops it as soon as it consumes. */
function runUntilReady(env: Record<string, string>, cwd = '/'): Promise<Ended> {
  let stopping = false;
  return runToEnd(env, cwd, (output, kill) => {
    if (stopping || !output.includes('is consuming')) return;
    stopping = true;
    kill('SIGTERM');
  });
}

it('names every fault of the environment at once, in words, without its values', async () => {
  const { code, output } = await runToEnd({
    RABBITMQ_URL: `amqp://user:${SECRET}@host`,
    SERVICE_NAME: 'two words',
    PORT: '99999',
    CONSUMER_CONCURRENCY: 'many',
    RETRY_DELAYS: '1,,2',
    SHUTDOWN_GRACE_SECONDS: '0',
    LOG_FORMAT: 'xml',
    LOG_LEVEL: 'loud',
    EVENTS_EXCHANGE_FILE: '/nowhere',
  });
  expect(code).toBe(1);
  for (const fault of [
    'DATABASE_URL is not set',
    'RABBITMQ_URL must be a URL like',
    'SERVICE_NAME must be 1 to 100 letters',
    'PORT must be a whole number from 0 to 65535',
    'CONSUMER_CONCURRENCY must be a whole number',
    'RETRY_DELAYS must be seconds like 1,5,30',
    'SHUTDOWN_GRACE_SECONDS must be a whole number from 1',
    'LOG_FORMAT must be json or text',
    'LOG_LEVEL must be error, warn',
    'EVENTS_EXCHANGE_FILE names a file that cannot be read (ENOENT)',
  ])
    expect(output).toContain(fault);
  for (const value of ['hunter2', 'word@', 'two words', '99999', 'many', 'xml', 'loud'])
    expect(output).not.toContain(value);
  expect(output).not.toMatch(/\n +at /);
});

it('takes an empty value for none, and refuses a variable that is given twice', async () => {
  const databaseFile = await file('database-url', db.url);
  const { code, output } = await runToEnd({
    DATABASE_URL: db.url,
    DATABASE_URL_FILE: databaseFile,
    RABBITMQ_URL: '',
  });
  expect(code).toBe(1);
  expect(output).toContain('DATABASE_URL_FILE and DATABASE_URL are both set');
  expect(output).toContain('RABBITMQ_URL is not set');
  expect(output).not.toContain(new URL(db.url).password);
});

it('reads every value from a file too, without its line end', async () => {
  const { code, output } = await runUntilReady({
    DATABASE_URL_FILE: await file('d', `${db.url}\n`),
    RABBITMQ_URL_FILE: await file('r', `${broker.url}\n`),
    SERVICE_NAME_FILE: await file('s', 'from-file\n'),
    PORT_FILE: await file('p', `${await freePort()}\n`),
    CONSUMER_CONCURRENCY_FILE: await file('c', '3\n'),
  });
  expect(output).toContain('from-file is consuming');
  expect(code).toBe(0);
  expect(await broker.depth('from-file')).toEqual({ ready: 0, consumers: 0 });
});

it('completes the environment from .env, which never wins over it', async () => {
  await file(
    '.env',
    `DATABASE_URL=${db.url}\nRABBITMQ_URL=${broker.url}\nSERVICE_NAME=from-dotenv\nPORT=1\n`,
  );
  const env = { SERVICE_NAME: 'from-environment', PORT: String(await freePort()) };
  const { code, output } = await runUntilReady(env, folder);
  expect(output).toContain('from-environment is consuming');
  expect(code).toBe(0);
});

it('exits when its port is taken', async () => {
  const { port } = new URL(db.url);
  const { code, output } = await runUntilReady({
    DATABASE_URL: db.url,
    RABBITMQ_URL: broker.url,
    PORT: port,
  });
  expect(code).toBe(1);
  expect(output).toContain('EADDRINUSE');
});
