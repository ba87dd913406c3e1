import 'reflect-metadata';
import { Logger } from '@nestjs/common';
import { ConfigurationError } from './config/index.js';
import { DatabaseUnavailableError } from './database/index.js';
import { StartupFaultsError } from './idempotency/index.js';
import { HandlerOptionsError, TopologyError } from './messaging/index.js';
import { redactUrls } from './observability/index.js';
import { start } from './start.js';

/** Errors that tell their reader what to do. Any other is a defect, and its place matters. */
const EXPLAINED = [
  ConfigurationError,
  DatabaseUnavailableError,
  StartupFaultsError,
  HandlerOptionsError,
  TopologyError,
];

try {
  await start();
} catch (error) {
  const explained = EXPLAINED.some((type) => error instanceof type);
  const text =
    error instanceof Error
      ? ((explained ? undefined : error.stack) ?? error.message)
      : String(error);
  new Logger('Start').fatal(redactUrls(text));
  process.exit(1);
}
