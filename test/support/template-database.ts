import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { relative } from 'node:path';
import { promisify } from 'node:util';
import type { Client } from 'pg';
import { isLeftOver } from './names.js';
import { projectRoot, sourcesIn } from './project.js';

const prefix = 'test_template_';

/**
 * Makes sure that a database with the migrations of this checkout exists, and returns its name. It is made
 * by the migration program itself. Call it under the test run's lock.
 */
export async function prepareTemplate(admin: Client, databaseUrl: string): Promise<string> {
  const name = prefix + (await migrationsHash());
  if (!(await isComplete(admin, name))) await buildTemplate(admin, name, databaseUrl);
  await admin.query(`COMMENT ON DATABASE "${name}" IS 'used ${new Date().toISOString()}'`);
  return name;
}

/** Drops databases of crashed runs, and templates of earlier migrations that no run uses any more. */
export async function dropLeftOvers(admin: Client): Promise<void> {
  const { rows } = await admin.query<{ name: string; unused: boolean }>(
    `SELECT datname AS name,
            coalesce(substring(shobj_description(oid, 'pg_database') FROM 'used (.*)')::timestamptz
                     < now() - interval '1 hour', true) AS unused
       FROM pg_database WHERE datname LIKE 'test\\_%'`,
  );
  for (const { name, unused } of rows) {
    if (isLeftOver(name)) await admin.query(`DROP DATABASE IF EXISTS "${name}" WITH (FORCE)`);
    if (name.startsWith(prefix) && unused) await dropTemplate(admin, name);
  }
}

/** A template is marked as one only when its migrations have run; a crash leaves it unmarked. */
async function isComplete(admin: Client, name: string): Promise<boolean> {
  const { rows } = await admin.query<{ complete: boolean }>(
    'SELECT datistemplate AS complete FROM pg_database WHERE datname = $1',
    [name],
  );
  return rows[0]?.complete ?? false;
}

async function buildTemplate(admin: Client, name: string, databaseUrl: string): Promise<void> {
  await dropTemplate(admin, name);
  await admin.query(`CREATE DATABASE "${name}" TEMPLATE template0`);
  await migrate(databaseUrl, name);
  // A database cannot be copied while somebody is connected to it: nobody can be, from here on.
  await admin.query(`ALTER DATABASE "${name}" WITH IS_TEMPLATE true ALLOW_CONNECTIONS false`);
}

async function dropTemplate(admin: Client, name: string): Promise<void> {
  const { rowCount } = await admin.query('SELECT FROM pg_database WHERE datname = $1', [name]);
  if (rowCount === 0) return;
  await admin.query(`ALTER DATABASE "${name}" WITH IS_TEMPLATE false`);
  await admin.query(`DROP DATABASE "${name}" WITH (FORCE)`);
}

/** Runs the migration program on a database of a server. */
export async function migrate(databaseUrl: string, name: string): Promise<void> {
  const url = new URL(databaseUrl);
  url.pathname = `/${name}`;
  await promisify(execFile)(process.execPath, ['dist/src/migrate.js'], {
    cwd: projectRoot,
    env: { PATH: process.env.PATH, DATABASE_URL: url.href },
  });
}

async function migrationsHash(): Promise<string> {
  const hash = createHash('sha256');
  for (const file of await sourcesIn('migrations'))
    hash.update(relative(projectRoot, file)).update(await readFile(file));
  return hash.digest('hex').slice(0, 12);
}
