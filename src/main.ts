import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { redactUrls } from './observability/index.js';
import { start } from './start.js';

const logger = new Logger('Main');

// Work that nobody awaits cannot spoil a transaction; it is a defect to be seen, not a reason to stop.
process.on('unhandledRejection', (reason) => {
  const text = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
  logger.error(`A promise was not awaited and failed: ${redactUrls(text)}`);
});

try {
  await start();
} catch (error) {
  logger.fatal(redactUrls(error instanceof Error ? error.message : String(error)));
  process.exit(1);
}
