import { QueryFailedError } from 'typeorm';
import {
  CommitOutcomeUnknownError,
  ConnectionLostError,
  DatabaseSilentError,
  DatabaseUnavailableError,
  PreparedStatementLostError,
} from './errors.js';

/** How far a chain of causes is followed. */
const MAX_CAUSES = 8;

const SERIALIZATION_FAILURES = new Set(['40001', '40P01']);
const LOCK_NOT_AVAILABLE = '55P03';
const PROTOCOL_VIOLATION = '08P01';
const READ_ONLY = '25006';
const IDLE_IN_TRANSACTION_TIMEOUT = '25P03';
/** Connection exceptions, insufficient resources. */
const OUTAGE_CLASSES = ['08', '53'];
/** admin_shutdown, crash_shutdown, cannot_connect_now, database_dropped, idle_session_timeout. */
const OUTAGE_STATES = new Set(['57P01', '57P02', '57P03', '57P04', '57P05', READ_ONLY]);

const OUTAGES = [
  CommitOutcomeUnknownError,
  ConnectionLostError,
  DatabaseSilentError,
  DatabaseUnavailableError,
  PreparedStatementLostError,
];

/** The SQLSTATE that PostgreSQL answered with, found through TypeORM's wrapping and `cause`s. */
export function sqlStateOf(error: unknown): string | undefined {
  return answerOf(error)?.code;
}

function answerOf(error: unknown): { code: string; severity: string } | undefined {
  for (const link of causes(error)) {
    const { code, severity } = link as { code?: unknown; severity?: unknown };
    // A server's answer has a severity; Node's ECONNREFUSED and the like do not.
    if (typeof code === 'string' && typeof severity === 'string') {
      return { code, severity };
    }
  }
  return undefined;
}

/** The same work, run again, is expected to succeed: 40001 and 40P01. */
export function isSerializationFailure(error: unknown): boolean {
  return SERIALIZATION_FAILURES.has(sqlStateOf(error) ?? '');
}

/** A lock was held by someone else for longer than `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return sqlStateOf(error) === LOCK_NOT_AVAILABLE;
}

/**
 * The database is away, read-only, out of resources, or did not say whether it committed. Says
 * nothing about the message that was being processed.
 */
export function isDatabaseOutage(error: unknown): boolean {
  const state = sqlStateOf(error);
  if (state === IDLE_IN_TRANSACTION_TIMEOUT) {
    return false;
  }
  for (const link of causes(error)) {
    if (OUTAGES.some((type) => link instanceof type)) {
      return true;
    }
    // TypeORM wraps what the driver threw; without a SQLSTATE the connection broke under the query.
    if (link instanceof QueryFailedError && state === undefined) {
      return isBrokenConnection(link.driverError);
    }
  }
  return state !== undefined && isOutageState(state) && !isUnsendable(error);
}

/**
 * The connection may serve no other transaction, although it is open. After a failover some still lead to the
 * server that is read-only now, and would for ever.
 */
export function isConnectionSpoiled(error: unknown): boolean {
  return (
    sqlStateOf(error) === READ_ONLY ||
    [...causes(error)].some(
      (link) =>
        link instanceof CommitOutcomeUnknownError || link instanceof PreparedStatementLostError,
    )
  );
}

/**
 * The server refuses the one statement, which has more than 65,535 parameters for instance, and goes on. A
 * pooler that cannot reach the server says the same with severity FATAL.
 */
function isUnsendable(error: unknown): boolean {
  const answer = answerOf(error);
  return answer?.code === PROTOCOL_VIOLATION && answer.severity === 'ERROR';
}

export function isOutageState(state: string): boolean {
  return OUTAGE_STATES.has(state) || OUTAGE_CLASSES.includes(state.slice(0, 2));
}

const BROKEN = /connection (terminated|ended)|connection error|timeout exceeded|was closed/i;

function isBrokenConnection(error: Error): boolean {
  return 'errno' in error || BROKEN.test(error.message);
}

function* causes(error: unknown): Generator<object> {
  let link = error;
  for (let depth = 0; depth < MAX_CAUSES && typeof link === 'object' && link !== null; depth++) {
    yield link;
    link =
      link instanceof QueryFailedError ? link.driverError : (link as { cause?: unknown }).cause;
  }
}
