import { HttpException } from '@nestjs/common';
import { RpcException } from '@nestjs/microservices';
import {
  MisplacedMessageError,
  PermanentError,
  RetryLaterError,
  UnprocessableMessageError,
} from '../errors.js';
import type { RetrySchedule } from './retry-policy.js';

/** What an error says about its message. */
export type Failure =
  /** It will fail every time. */
  | { kind: 'permanent'; reason: string; error: unknown }
  /** It failed, and may succeed later. */
  | { kind: 'failed'; error: unknown; retryAfterMs?: number }
  /** Somebody else is processing it right now. Not an attempt. */
  | { kind: 'busy'; error: unknown }
  /** Its handler is on another queue of the service. */
  | { kind: 'misplaced'; queue: string; error: unknown }
  /** Something that every message needs is away. Not an attempt. */
  | { kind: 'outage'; error: unknown };

/** What the messaging folder cannot know by itself, and is told by the application. */
export type Classify = (error: unknown) => Failure | undefined;

/** What Nest throws when a guard returns false. */
const FORBIDDEN_MESSAGE = 'Forbidden resource';
const BAD_REQUEST = new Set([400, 422]);
const REFUSED = new Set([401, 403]);

export function failureOf(error: unknown, classify: Classify): Failure {
  if (error instanceof MisplacedMessageError) {
    return { kind: 'misplaced', queue: error.queue, error };
  }
  if (error instanceof UnprocessableMessageError) {
    return { kind: 'permanent', reason: error.reason, error };
  }
  if (error instanceof PermanentError) {
    return { kind: 'permanent', reason: 'permanent-error', error };
  }
  if (error instanceof RetryLaterError) {
    return { kind: 'failed', error, retryAfterMs: error.delayMs };
  }
  if (error instanceof RpcException && error.getError() === FORBIDDEN_MESSAGE) {
    return { kind: 'permanent', reason: 'guard-refused', error };
  }
  // Pipes and guards are shared with HTTP and throw its exceptions.
  if (error instanceof HttpException && REFUSED.has(error.getStatus())) {
    return { kind: 'permanent', reason: 'guard-refused', error };
  }
  if (error instanceof HttpException && BAD_REQUEST.has(error.getStatus())) {
    return { kind: 'permanent', reason: 'invalid-payload', error };
  }
  return classify(error) ?? { kind: 'failed', error };
}

/** How a handler ended that did not end well. */
export interface Failed {
  failure: Failure;
  /** Whose keys it works under, or would. */
  consumer: string;
  schedule: RetrySchedule;
  /** Where the message's own header does not say it. */
  firstFailedAt?: string | undefined;
}

const ORDER = ['misplaced', 'permanent', 'busy', 'failed', 'outage'] as const;

/**
 * Of several handlers' failures of one message, the one that decides: as long as one may succeed
 * later, the message comes back, and those that are done are duplicates then. Of those that may, the
 * one with the most attempts.
 */
export function decisive(all: readonly Failed[]): Failed | undefined {
  return all.toSorted(
    (a, b) =>
      ORDER.indexOf(b.failure.kind) - ORDER.indexOf(a.failure.kind) ||
      b.schedule.attempts - a.schedule.attempts,
  )[0];
}
