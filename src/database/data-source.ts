import type { DataSourceOptions } from 'typeorm';
import { migrations } from '../../migrations/index.js';

/** How long connecting, or waiting for a free connection, may take. */
const CONNECT_TIMEOUT_MS = 5_000;

export interface DatabaseOptions {
  url: string;
  /** Shown in `pg_stat_activity`. */
  applicationName: string;
  /** Connections of this process. */
  poolSize: number;
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
    extra: { pipeline: true },
  };
}
