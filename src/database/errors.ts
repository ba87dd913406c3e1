/** No connection to PostgreSQL could be had: it is away, full, or the pool is exhausted. */
export class DatabaseUnavailableError extends Error {
  override readonly name = 'DatabaseUnavailableError';

  constructor(cause: unknown) {
    super(`PostgreSQL cannot be reached: ${messageOf(cause)}`, { cause });
  }
}

/** The connection broke while a transaction was open. PostgreSQL rolls such a transaction back. */
export class ConnectionLostError extends Error {
  override readonly name = 'ConnectionLostError';

  constructor(cause: unknown) {
    super(`The connection of the transaction was lost: ${messageOf(cause)}`, { cause });
  }
}

/**
 * COMMIT was sent and its answer never came: the transaction may be committed or not. Only another
 * delivery of the same message finds out.
 */
export class CommitOutcomeUnknownError extends Error {
  override readonly name = 'CommitOutcomeUnknownError';

  constructor(cause: unknown) {
    super(`The connection was lost at COMMIT, its outcome is unknown: ${messageOf(cause)}`, {
      cause,
    });
  }
}

/**
 * PostgreSQL had already given the transaction up when the work returned: a statement in it failed
 * and its error was caught. Nothing of it is stored.
 */
export class TransactionAbortedError extends Error {
  override readonly name = 'TransactionAbortedError';

  constructor(cause: unknown) {
    super(
      'A statement failed and its error was caught, so PostgreSQL rolled the transaction back: ' +
        `${messageOf(cause)}. Let the error pass, or put the statement into a nested ` +
        'dataSource.transaction(), which is a savepoint.',
      { cause },
    );
  }
}

/** The work ended or began a transaction itself. The one around it belongs to the template. */
export class TransactionControlError extends Error {
  override readonly name = 'TransactionControlError';

  constructor(what: string) {
    super(
      `${what} inside a handler: its transaction is begun and committed for it. Use a nested ` +
        'dataSource.transaction() for a savepoint, or outsideTransaction(fn) for a transaction of its own.',
    );
  }
}

/** A query came after its transaction had ended, from work that nobody waited for. */
export class TransactionEndedError extends Error {
  override readonly name = 'TransactionEndedError';

  constructor() {
    super(
      'A query was made after its transaction had ended, and was not run: a promise was not awaited. ' +
        'Await it, or start background work with outsideTransaction(fn).',
    );
  }
}

/** The work took longer than its `timeout`. Rolled back, its connection closed. */
export class TransactionTimeoutError extends Error {
  override readonly name = 'TransactionTimeoutError';

  constructor(timeoutMs: number) {
    super(`The transaction took longer than its timeout of ${timeoutMs} ms and was rolled back.`);
  }
}

/**
 * A statement stayed unanswered for longer than PostgreSQL lets one run: the server or the network has gone
 * silent. Says nothing about the message.
 */
export class DatabaseSilentError extends Error {
  override readonly name = 'DatabaseSilentError';

  constructor(limitMs: number) {
    super(
      `PostgreSQL neither answers a statement nor cancels it after its timeout of ${limitMs} ms: it, or ` +
        'the network, is silent.',
    );
  }
}

/**
 * A connection and its session disagree about what is prepared: a pooler has changed the session. Says
 * nothing about the message.
 */
export class PreparedStatementLostError extends Error {
  override readonly name = 'PreparedStatementLostError';

  constructor(statement: string, cause: unknown) {
    super(
      `The statement ${statement} was prepared on another session (${messageOf(cause)}). Behind a pooler ` +
        'in transaction mode, as PgBouncer before 1.21, set DATABASE_PREPARED_STATEMENTS=off.',
      { cause },
    );
  }
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
