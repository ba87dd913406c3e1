import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { install, installObstacle } from '../../scripts/services/apt.js';
import { exists } from '../../scripts/services/files.js';
import { ownerOf } from '../../scripts/services/instance-folder.js';
import { postgres } from '../../scripts/services/postgres.js';
import { lastLines, run } from '../../scripts/services/processes.js';
import type { Owner } from '../../scripts/services/server.js';
import { atLeast } from '../../scripts/services/versions.js';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { withAdmin } from './postgres-admin.js';

const PROGRAM = '/usr/sbin/pgbouncer';
const debian = { name: 'pgbouncer', minimum: '1.18' };
/** From here on it keeps track of prepared statements, unless told not to. */
const KNOWS_PREPARED = '1.21';

/** Installs PgBouncer where it is missing and can be. Returns why a spec cannot have one. */
export async function pgBouncerObstacle(): Promise<string | undefined> {
  if (await exists(PROGRAM)) return undefined;
  const obstacle = await installObstacle([debian]);
  if (obstacle === undefined) {
    await install([debian], (line) => process.stderr.write(`${line}\n`));
  }
  return obstacle;
}

/**
 * Starts a PgBouncer in transaction mode in front of a database. It is gone when the spec has ended, also
 * when the test process is killed.
 *
 * @param poolSize the sessions that it opens at most
 */
export async function startPgBouncer(databaseUrl: string, poolSize: number): Promise<PgBouncer> {
  const folder = await mkdtemp(join(tmpdir(), 'test-pgbouncer-'));
  // It refuses to run as root.
  const owner = await ownerOf(postgres, undefined);
  const url = new URL(databaseUrl);
  const target = `host=${url.hostname} port=${url.port || 5432}`;
  const login = [url.username, url.password].map((part) => `"${decodeURIComponent(part)}"`);
  url.hostname = '127.0.0.1';
  url.port = String(await freePort());
  const files = {
    'users.txt': login.join(' '),
    'pgbouncer.ini': await configuration({ target, port: url.port, poolSize, folder }),
  };
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(folder, name), `${content}\n`, { mode: 0o600 });
    if (owner) await chown(join(folder, name), owner.uid, owner.gid);
  }
  if (owner) await chown(folder, owner.uid, owner.gid);
  const bouncer = new PgBouncer(url.href, folder, owner);
  try {
    await bouncer.start();
    return bouncer;
  } catch (error) {
    await bouncer[Symbol.asyncDispose]();
    throw error;
  }
}

async function configuration(of: {
  target: string;
  port: string;
  poolSize: number;
  folder: string;
}): Promise<string> {
  const version = /PgBouncer (\S+)/.exec(await run(PROGRAM, ['--version'], { folder: '/' }))?.[1];
  // Every version behaves as the oldest one. Nothing else is set that a service could need.
  const prepared = atLeast(version ?? '0', KNOWS_PREPARED) ? 'max_prepared_statements = 0' : '';
  return `
    [databases]
    * = ${of.target}
    [pgbouncer]
    listen_addr = 127.0.0.1
    listen_port = ${of.port}
    unix_socket_dir =
    auth_type = scram-sha-256
    auth_file = ${join(of.folder, 'users.txt')}
    logfile = ${join(of.folder, 'pgbouncer.log')}
    pool_mode = transaction
    default_pool_size = ${of.poolSize}
    ${prepared}`.replaceAll(/^\s+/gm, '');
}

export class PgBouncer implements AsyncDisposable {
  private guard: ChildProcess | undefined;

  constructor(
    /** The database's URL with this pooler's address. */
    readonly url: string,
    private readonly folder: string,
    private readonly owner: Owner | undefined,
  ) {}

  /** Starts it, at the same port each time; returns when a statement has passed through it. */
  async start(): Promise<void> {
    // The shell waits for the end of its input, which comes when this process closes it or ends, in whatever way.
    const script = `"$0" -q pgbouncer.ini & cat >/dev/null; kill $!; wait $!`;
    this.guard = spawn('sh', ['-c', script, PROGRAM], {
      cwd: this.folder,
      // Not in the group that Ctrl-C ends.
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
      ...this.owner,
    });
    this.guard.unref();
    (this.guard.stdin as Socket).unref();
    await eventually(() => withAdmin((client) => client.query('SELECT 1'), this.url)).catch(
      async (error: unknown) => {
        const log = await readFile(join(this.folder, 'pgbouncer.log'), 'utf8').catch(String);
        throw new Error(`PgBouncer does not answer:\n${lastLines(log)}`, { cause: error });
      },
    );
  }

  /** Ends it at once, with every connection through it. */
  async stop(): Promise<void> {
    if (this.guard?.exitCode !== null) return;
    const ended = once(this.guard, 'exit');
    this.guard.stdin?.end();
    await ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    await rm(this.folder, { recursive: true, force: true });
  }
}
