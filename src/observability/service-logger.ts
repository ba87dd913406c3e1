import { ConsoleLogger, type LogLevel } from '@nestjs/common';
import { redactUrls } from './redact.js';

const LEVELS: LogLevel[] = ['fatal', 'error', 'warn', 'log', 'debug', 'verbose'];

/** Nest lists every module and route at start; that is for who looks for it. */
const DETAILS = new Set(['InstanceLoader', 'RoutesResolver', 'RouterExplorer']);
/** Nest prints an error that it also throws, and main.ts prints what is thrown. */
const PRINTED_BY_MAIN = 'ExceptionHandler';

/** One line a fact, readable in a terminal and JSON elsewhere; no passwords in either. */
export class ServiceLogger extends ConsoleLogger {
  constructor(format: 'json' | 'text' | undefined, level: LogLevel) {
    const json = format === undefined ? !process.stdout.isTTY : format === 'json';
    super({
      json,
      colors: !json && process.stdout.isTTY,
      logLevels: LEVELS.slice(0, LEVELS.indexOf(level) + 1),
    });
  }

  override log(message: unknown, ...rest: unknown[]): void {
    const context = rest.at(-1);
    if (typeof context === 'string' && DETAILS.has(context)) {
      super.debug(redacted(message), ...rest);
    } else {
      super.log(redacted(message), ...rest);
    }
  }

  override error(message: unknown, ...rest: unknown[]): void {
    if (rest.at(-1) !== PRINTED_BY_MAIN) {
      super.error(redacted(message), ...rest.map(redacted));
    }
  }

  override warn(message: unknown, ...rest: unknown[]): void {
    super.warn(redacted(message), ...rest);
  }
}

/** Whoever logs, and whatever an error of a library quotes: no URL leaves with its password. */
function redacted(value: unknown): unknown {
  if (value instanceof Error) {
    return redactUrls(value.stack ?? value.message);
  }
  return typeof value === 'string' ? redactUrls(value) : value;
}
