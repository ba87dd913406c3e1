import type { TransactionOptions } from '../database/index.js';
import { milliseconds, type Duration } from '../duration/index.js';
import type { FingerprintSource } from './fingerprint.js';
import type { IdempotentHandlerMetadata } from './idempotent-handler.decorator.js';
import type { KeySource } from './key.js';

const DEFAULT_RETENTION: Duration = '90d';
const DEFAULT_TIMEOUT: Duration = '60s';
/** Longer than a healthy handler takes, shorter than anyone wants a connection to wait. */
const LOCK_TIMEOUT: Duration = '5s';

/** What a timer can hold; past it, it would fire at once. */
const MAX_TIMEOUT: Duration = '24d';

/** An idempotent handler as it is used per message: every option checked, every default applied. */
export interface Handler {
  consumer: string;
  /** Of its messages. */
  patterns: readonly string[];
  keyFrom: KeySource;
  fingerprint: FingerprintSource | undefined;
  retentionMs: number;
  /** How far back its messages are published again; undefined when that is the service's horizon. */
  reprocessingMs: number | undefined;
  transaction: TransactionOptions;
  /** A request handler: its reply is kept with the key. */
  storesReply: boolean;
}

/** @throws RangeError when an option is not usable */
export function handlerFrom(
  { keyFrom, options }: IdempotentHandlerMetadata,
  consumer: string,
  storesReply: boolean,
  patterns: readonly string[],
): Handler {
  checkKeySource(keyFrom);
  const timeoutMs = checkedTimeout(options.timeout ?? DEFAULT_TIMEOUT);
  return {
    consumer: checkedConsumer(consumer),
    patterns,
    keyFrom,
    fingerprint: options.fingerprint,
    retentionMs: milliseconds(options.retention ?? DEFAULT_RETENTION),
    reprocessingMs:
      options.reprocessing === undefined ? undefined : milliseconds(options.reprocessing),
    transaction: {
      isolation: options.isolation ?? 'READ COMMITTED',
      timeoutMs,
      lockTimeoutMs: Math.min(milliseconds(LOCK_TIMEOUT), timeoutMs),
    },
    storesReply,
  };
}

function checkKeySource(keyFrom: KeySource): void {
  const paths = typeof keyFrom === 'string' ? [keyFrom] : keyFrom;
  if (
    typeof paths !== 'function' &&
    (paths.length === 0 || paths.some((path) => path.split('.').includes('')))
  ) {
    throw new RangeError('its key needs a path like "sale.id", and no part of it may be empty');
  }
}

function checkedTimeout(timeout: Duration): number {
  const timeoutMs = milliseconds(timeout);
  if (timeoutMs > milliseconds(MAX_TIMEOUT)) {
    throw new RangeError(`its timeout of ${timeout} is too long: at most ${MAX_TIMEOUT}`);
  }
  return timeoutMs;
}

function checkedConsumer(consumer: string): string {
  if (consumer.trim() === '' || consumer.includes('\0') || Buffer.byteLength(consumer) > 200) {
    throw new RangeError('its consumer name must have 1 to 200 bytes');
  }
  return consumer;
}
