import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { Client } from 'pg';
import { withAdmin } from '../../test/support/postgres-admin.js';
import { projectRoot } from '../../test/support/project.js';
import { reasonOf } from '../services/errors.js';
import { redact } from '../services/url.js';
import { DemoError } from './errors.js';

/** Held while a demo looks for left-overs and makes its own database, so that none takes the other's for one. */
const LOCK = 7_203_114_966;
const INSUFFICIENT_PRIVILEGE = '42501';

/**
 * Creates the database of a run. `removeLeftOver` is called with the names of crashed runs first: a
 * running demo is connected to its database from here on, so one that nobody is connected to is left over.
 */
export async function createDatabase(
  name: string,
  adminUrl: string,
  removeLeftOver: (name: string) => Promise<void>,
): Promise<DemoDatabase> {
  return withAdmin(async (admin) => {
    await admin.query('SELECT pg_advisory_lock($1)', [LOCK]); // until this session ends
    for (const leftOver of await leftOvers(admin)) {
      await removeLeftOver(leftOver);
      await drop(admin, leftOver);
    }
    await create(admin, name, adminUrl);
    try {
      return await DemoDatabase.connect(name, adminUrl);
    } catch (error) {
      await drop(admin, name);
      throw error;
    }
  }, adminUrl);
}

export class DemoDatabase {
  private constructor(
    private readonly name: string,
    readonly url: string,
    private readonly adminUrl: string,
    /** The one connection of the demo itself; what it does, it does in turn. */
    readonly client: Client,
  ) {}

  static async connect(name: string, adminUrl: string): Promise<DemoDatabase> {
    const url = new URL(adminUrl);
    url.pathname = `/${name}`;
    const client = new Client({ connectionString: url.href, application_name: 'demo' });
    client.on('error', () => undefined); // the next query fails, and says so
    await client.connect();
    return new DemoDatabase(name, url.href, adminUrl, client);
  }

  async migrate(signal: AbortSignal): Promise<void> {
    try {
      await promisify(execFile)(process.execPath, ['dist/src/migrate.js'], {
        cwd: projectRoot,
        env: { PATH: process.env.PATH, DATABASE_URL: this.url },
        signal,
      });
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      const output = `${stdout}${stderr}`.trim() || reasonOf(error);
      throw new DemoError(`node dist/src/migrate.js failed:\n${output}`, { cause: error });
    }
  }

  async commissions(): Promise<number> {
    const { rows } = await this.client.query<{ posted: number }>(
      'SELECT count(*)::int AS posted FROM commission',
    );
    return rows[0]!.posted;
  }

  async remove(): Promise<void> {
    await this.client.end().catch(() => undefined);
    await withAdmin((admin) => drop(admin, this.name), this.adminUrl);
  }
}

async function leftOvers(admin: Client): Promise<string[]> {
  const { rows } = await admin.query<{ name: string }>(
    `SELECT datname AS name FROM pg_database
      WHERE datname ~ '^demo_[0-9a-f]{8}$' AND pg_get_userbyid(datdba) = current_user
        AND NOT EXISTS (SELECT FROM pg_stat_activity
                         WHERE datid = pg_database.oid AND backend_type = 'client backend')`,
  );
  return rows.map(({ name }) => name);
}

async function create(admin: Client, name: string, adminUrl: string): Promise<void> {
  try {
    // template1 cannot be copied while somebody is connected to it.
    await admin.query(`CREATE DATABASE ${name} TEMPLATE template0`);
  } catch (error) {
    if ((error as { code?: string }).code !== INSUFFICIENT_PRIVILEGE) throw error;
    throw new DemoError(
      [
        `The user of ${redact(adminUrl)} may not create databases.`,
        'The demo works in a database of its own, so that it touches nothing of yours.',
        'Let a superuser run ALTER ROLE <user> CREATEDB, or unset DATABASE_URL to have a server started for you.',
      ].join('\n'),
      { cause: error },
    );
  }
}

const drop = (admin: Client, name: string) =>
  admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
