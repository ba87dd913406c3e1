import type { DataSource, DataSourceOptions } from 'typeorm';
import { migrations } from '../../migrations/index.js';

/** How long connecting, or waiting for a free connection, may take. */
const CONNECT_TIMEOUT_MS = 5_000;

export interface DatabaseOptions {
  url: string;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  /** Connections of this process. */
  poolSize: number;
  /** Whether statements are prepared by name; true unless set. Not behind every pooler. */
  preparedStatements?: boolean;
}

/** What `pg` is told beside TypeORM's options; it ignores what it does not know. */
interface Extra {
  pipeline: boolean;
  preparedStatements: boolean;
}

/** One definition for the service and the migration program. */
export function dataSourceOptions(options: DatabaseOptions): DataSourceOptions {
  return {
    type: 'postgres',
    url: options.url,
    applicationName: options.applicationName,
    poolSize: options.poolSize,
    connectTimeoutMS: CONNECT_TIMEOUT_MS,
    migrations,
    migrationsTransactionMode: 'each',
    synchronize: false,
    installExtensions: false,
    // BEGIN and the claim share a round trip, and Promise.all of saves is legal on one connection.
    extra: {
      pipeline: true,
      preparedStatements: options.preparedStatements ?? true,
    } satisfies Extra,
  };
}

/** Whether the connections of a data source may be sent prepared statements. */
export function preparesStatements({ options }: DataSource): boolean {
  return (options.extra as Extra | undefined)?.preparedStatements ?? true;
}
