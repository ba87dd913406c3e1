import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf, ServicesError } from './errors.js';
import { exists, giveTo } from './files.js';
import { launch, run } from './processes.js';
import type { DebianPackage, Instance, Server, Urls } from './server.js';
import { redact, urlFrom } from './url.js';

const DATABASE = 'app';
const TOO_MANY_CONNECTIONS = '53300';
const LIBRARIES = '/usr/lib/postgresql';

export const postgres: Server = {
  name: 'postgres',
  title: 'PostgreSQL',
  variable: 'DATABASE_URL',
  ports: ['postgres'],
  composePorts: { postgres: 'POSTGRES_PORT' },
  fromEnvironment(env) {
    if (!env.DATABASE_URL) return undefined;
    urlFrom('DATABASE_URL', env.DATABASE_URL, ['postgres', 'postgresql']);
    return { databaseUrl: env.DATABASE_URL };
  },
  urls: ({ user, password, ports }) => ({
    databaseUrl: `postgres://${user}:${password}@127.0.0.1:${ports.postgres}/${DATABASE}`,
  }),
  check,
  debian: {
    name: 'postgresql',
    minimum: '15',
    systemUser: 'postgres',
    main: 'postgres',
    // A first start that was killed leaves initdb behind, which removes the data when it fails.
    processes: ['initdb', 'postgres'],
    stopSignal: 'SIGINT', // "fast": rolls back what is open instead of waiting for clients
    programs,
    initialise,
    launch: start,
  },
};

async function check({ databaseUrl = '' }: Urls): Promise<void> {
  const { default: pg } = await import('pg');
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: 5_000,
    application_name: 'services',
  });
  client.on('error', () => {}); // a connection that breaks after the answer is of no interest
  try {
    await client.connect();
    await client.query('SELECT 1');
  } catch (error) {
    if ((error as { code?: string }).code === TOO_MANY_CONNECTIONS) return; // busy, which is not down
    throw new ServicesError(
      `PostgreSQL does not answer at ${redact(databaseUrl)}: ${reasonOf(error)}`,
    );
  } finally {
    await client.end().catch(() => {});
  }
}

async function programs(): Promise<string | undefined> {
  const versions = await readdir(LIBRARIES).catch(() => []);
  const newestFirst = versions
    .map(Number)
    .filter((version) => version >= Number(postgres.debian.minimum))
    .sort((a, b) => b - a);
  for (const version of newestFirst) {
    const folder = join(LIBRARIES, String(version), 'bin');
    if (await exists(join(folder, 'initdb'))) return folder;
  }
  return undefined;
}

async function initialise(instance: Instance): Promise<void> {
  const passwordFile = join(instance.folder, 'password');
  await writeFile(passwordFile, `${instance.password}\n`, { mode: 0o600 });
  await giveTo(passwordFile, instance.owner);
  const data = join(instance.folder, 'data');
  const options = [
    '--encoding=UTF8',
    '--locale=C.UTF-8',
    '--data-checksums',
    '--auth=scram-sha-256',
  ];
  const login = [`--username=${instance.user}`, `--pwfile=${passwordFile}`];
  await run(join(instance.programs, 'initdb'), ['-D', data, ...options, ...login], {
    folder: instance.folder,
    owner: instance.owner,
  });
  await rm(passwordFile);
  await createDatabase(instance, data);
}

/** Without a server: the single-user mode needs no port, no password and no waiting. */
async function createDatabase(instance: Instance, data: string): Promise<void> {
  const output = await run(
    join(instance.programs, 'postgres'),
    ['--single', '-D', data, 'postgres'],
    {
      folder: instance.folder,
      owner: instance.owner,
      input: `CREATE DATABASE ${DATABASE};\n`,
    },
  );
  // It ends with 0 whatever the statement did.
  if (!output.includes('ERROR:')) return;
  throw new ServicesError(`Creating the database failed:\n${output}`);
}

async function start(instance: Instance): ReturnType<DebianPackage['launch']> {
  const data = join(instance.folder, 'data');
  // Left by a killed server. PostgreSQL would refuse to start when its number belongs to somebody else by now;
  // the caller has made sure that none of our servers lives in this folder.
  await rm(join(data, 'postmaster.pid'), { force: true });
  const settings = {
    listen_addresses: '127.0.0.1',
    port: instance.ports.postgres,
    unix_socket_directories: '',
    max_connections: 300,
    shared_buffers: '256MB',
    timezone: 'UTC',
  };
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  return launch(join(instance.programs, 'postgres'), ['-D', data, ...flags], {
    folder: instance.folder,
    owner: instance.owner,
    logFile: join(instance.folder, 'postgres.log'),
  });
}
