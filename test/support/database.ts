import { Pool, type QueryResultRow } from 'pg';
import { withAdmin } from './postgres-admin.js';
import { temporaryName } from './names.js';
import { server } from './servers.js';
import { migrate } from './template-database.js';

/** By this name the harness's own sessions are told from those of the code under test. */
const harness = 'test-harness';

/** One session of the code under test, from pg_stat_activity. */
export interface Session {
  pid: number;
  applicationName: string;
  /** `active`, `idle`, `idle in transaction`, … */
  state: string;
  /** For example `Lock: transactionid`; null when it does not wait. */
  waitsFor: string | null;
  /** The statement that runs, or ran last. */
  query: string;
  /** The sessions that hold what it waits for. */
  blockedBy: number[];
}

/** One lock on a table or on a transaction, from pg_locks. */
export interface Lock {
  pid: number;
  type: string;
  /** The table or index, for locks on those. */
  relation: string | null;
  mode: string;
  granted: boolean;
}

export interface TestDatabase extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  /** The harness's own connections; neither listed by `activity` nor ended by `terminateBackends`. */
  readonly pool: Pool;
  /** Runs one statement on the harness's pool and returns its rows. */
  query<Row extends QueryResultRow>(sql: string, params?: unknown[]): Promise<Row[]>;
  /** The sessions of the code under test, as of now. */
  activity(): Promise<Session[]>;
  /** The locks that the code under test holds or waits for, as of now. */
  locks(): Promise<Lock[]>;
  /** Ends the sessions of the code under test that the filter picks, and returns how many these were. */
  terminateBackends(filter?: (session: Session) => boolean): Promise<number>;
  /** Ends every session in it and drops it. */
  drop(): Promise<void>;
}

export interface TestDatabaseOptions {
  /** Whether it has the tables of the template; true unless set. */
  migrated?: boolean;
  /** Of another server than the shared one. */
  serverUrl?: string;
}

/**
 * Creates a database of its own for a spec file: a copy of the migrated template, or an empty one.
 *
 * @example const db = cleanup.use(await createTestDatabase());
 */
export async function createTestDatabase({
  migrated = true,
  serverUrl,
}: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const name = temporaryName();
  const address = serverUrl ?? server('databaseUrl');
  const copied = migrated && serverUrl === undefined;
  const template = copied ? server('templateDatabase') : 'template0';
  const create = `CREATE DATABASE "${name}" TEMPLATE "${template}"`;
  await withAdmin((admin) => admin.query(create), address);
  if (migrated && !copied) await migrate(address, name);

  const url = new URL(address);
  url.pathname = `/${name}`;
  const pool = new Pool({ connectionString: url.href, max: 4, application_name: harness });
  // A test that restarts or cuts things ends idle connections of the harness too; the pool replaces them.
  pool.on('error', () => undefined);
  return new PostgresTestDatabase(name, url.href, pool, address);
}

class PostgresTestDatabase implements TestDatabase {
  constructor(
    readonly name: string,
    readonly url: string,
    readonly pool: Pool,
    private readonly serverUrl: string,
  ) {}

  async query<Row extends QueryResultRow>(sql: string, params?: unknown[]): Promise<Row[]> {
    const result = await this.pool.query<Row>(sql, params);
    return result.rows;
  }

  activity(): Promise<Session[]> {
    return this.query<Session & QueryResultRow>(
      `SELECT pid, application_name AS "applicationName", state, query,
              wait_event_type || ': ' || wait_event AS "waitsFor",
              pg_blocking_pids(pid) AS "blockedBy"
         FROM pg_stat_activity
        WHERE datname = current_database() AND application_name <> $1
          AND backend_type = 'client backend'
        ORDER BY backend_start`,
      [harness],
    );
  }

  locks(): Promise<Lock[]> {
    return this.query<Lock & QueryResultRow>(
      `SELECT l.pid, l.locktype AS type, l.relation::regclass::text AS relation, l.mode, l.granted
         FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE a.datname = current_database() AND a.application_name <> $1
        ORDER BY l.pid, l.locktype, l.mode`,
      [harness],
    );
  }

  async terminateBackends(filter: (session: Session) => boolean = () => true): Promise<number> {
    const pids = (await this.activity()).filter(filter).map((session) => session.pid);
    const ended = await this.query<{ ok: boolean }>(
      'SELECT pg_terminate_backend(pid) AS ok FROM unnest($1::int[]) AS pid',
      [pids],
    );
    return ended.filter(({ ok }) => ok).length;
  }

  async drop(): Promise<void> {
    if (!this.pool.ended) await this.pool.end();
    const drop = `DROP DATABASE IF EXISTS "${this.name}" WITH (FORCE)`;
    await withAdmin((admin) => admin.query(drop), this.serverUrl);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.drop();
  }
}
