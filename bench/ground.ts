import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import amqp from 'amqplib';
import { Client, Pool } from 'pg';
import type { ServiceUrls } from '../scripts/services/index.js';

const run = promisify(execFile);

/** A database and a vhost of this bench run's own, on the servers that all share. */
export interface Ground extends AsyncDisposable {
  databaseUrl: string;
  rabbitmqUrl: string;
  pool: Pool;
  /** `PostgreSQL 15.18, RabbitMQ 3.10.8` */
  versions: string;
}

/** Migrated, and dropped when disposed of. */
export async function createGround(servers: ServiceUrls): Promise<Ground> {
  const name = `bench_${Math.floor(Date.now() / 1000)}_${randomBytes(4).toString('hex')}`;
  const databaseUrl = withPath(servers.databaseUrl, name);
  const rabbitmqUrl = withPath(servers.rabbitmqUrl, name);
  const stack = new AsyncStack();
  try {
    await administer(servers.databaseUrl, `CREATE DATABASE "${name}"`);
    stack.defer(() =>
      administer(servers.databaseUrl, `DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`),
    );
    await manage(servers, 'PUT', `/vhosts/${name}`);
    stack.defer(() => manage(servers, 'DELETE', `/vhosts/${name}`));
    await allow(servers, name);
    await migrate(databaseUrl);
    const pool = new Pool({ connectionString: databaseUrl, max: 2 });
    stack.defer(() => pool.end());
    const versions = await versionsOf(pool, rabbitmqUrl);
    return {
      databaseUrl,
      rabbitmqUrl,
      pool,
      versions,
      [Symbol.asyncDispose]: () => stack.dispose(),
    };
  } catch (error) {
    await stack.dispose();
    throw error;
  }
}

/** Undoes what was done, last first. Node 20 has no AsyncDisposableStack. */
class AsyncStack {
  private readonly undo: (() => Promise<unknown>)[] = [];

  defer(undo: () => Promise<unknown>): void {
    this.undo.push(undo);
  }

  async dispose(): Promise<void> {
    for (const undo of this.undo.toReversed()) await undo();
  }
}

function withPath(url: string, name: string): string {
  const changed = new URL(url);
  changed.pathname = `/${name}`;
  return changed.href;
}

async function administer(databaseUrl: string, sql: string): Promise<void> {
  const admin = new Client({ connectionString: databaseUrl });
  await admin.connect();
  try {
    await admin.query(sql);
  } finally {
    await admin.end();
  }
}

async function migrate(databaseUrl: string): Promise<void> {
  await run(process.execPath, ['dist/src/migrate.js'], {
    env: { PATH: process.env.PATH, DATABASE_URL: databaseUrl },
  });
}

/** The bench connects as the user of the servers' URL; whoever creates a vhost is not in it by itself. */
async function allow(servers: ServiceUrls, vhost: string): Promise<void> {
  const user = new URL(servers.rabbitmqUrl).username || 'guest';
  const everything = { configure: '.*', write: '.*', read: '.*' };
  await manage(servers, 'PUT', `/permissions/${vhost}/${user}`, everything);
}

async function manage(
  { rabbitmqManagementUrl }: ServiceUrls,
  method: 'PUT' | 'DELETE',
  path: string,
  body: object = {},
): Promise<void> {
  const { username, password, origin } = new URL(rabbitmqManagementUrl);
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  const response = await fetch(`${origin}/api${path}`, {
    method,
    headers: {
      authorization: `Basic ${Buffer.from(credentials).toString('base64')}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  });
  if (!response.ok) {
    throw new Error(`RabbitMQ's management API: ${method} ${path}: ${response.status}`);
  }
}

async function versionsOf(pool: Pool, rabbitmqUrl: string): Promise<string> {
  const { rows } = await pool.query<{ server_version: string }>('SHOW server_version');
  const broker = await amqp.connect(rabbitmqUrl);
  const { version } = broker.connection.serverProperties;
  await broker.close();
  return `PostgreSQL ${rows[0]!.server_version.split(' ')[0]}, RabbitMQ ${version}`;
}
