import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { loadDatabaseUrl, processEnvironment } from './config/index.js';
import { dataSourceOptions, migrate } from './database/index.js';
import { redactUrls } from './observability/index.js';

/** The program behind `npm run migrate`: brings the schema up to date, and says what it did. */
const logger = new Logger('Migrate');

try {
  const url = loadDatabaseUrl(processEnvironment());
  const dataSource = new DataSource(
    // One connection holds the lock, one migrates.
    dataSourceOptions({ url, applicationName: 'migrate', poolSize: 2 }),
  );
  await dataSource.initialize();
  try {
    const done = await migrate(dataSource);
    logger.log(done.length === 0 ? 'The schema is current.' : `Migrated: ${done.join(', ')}.`);
  } finally {
    await dataSource.destroy();
  }
} catch (error) {
  logger.error(redactUrls(error instanceof Error ? error.message : String(error)));
  process.exitCode = 1;
}
