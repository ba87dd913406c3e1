import { isDatabaseOutage } from './database/index.js';
import { KeyBusyError, RejectedMessageError } from './idempotency/index.js';
import type { Failure } from './messaging/index.js';

/** What the errors of the database and the idempotency folder say about a message. */
export function classify(error: unknown): Failure | undefined {
  if (error instanceof RejectedMessageError) {
    return { kind: 'permanent', reason: error.reason, error };
  }
  if (error instanceof KeyBusyError) {
    return { kind: 'busy', error };
  }
  return isDatabaseOutage(error) ? { kind: 'outage', error } : undefined;
}
