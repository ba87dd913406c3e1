import type { Duplex } from 'node:stream';
import { Logger } from '@nestjs/common';
import type { ClientBase, QueryResult } from 'pg';
import type { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { PostgresQueryRunner } from 'typeorm/driver/postgres/PostgresQueryRunner.js';
import {
  CommitOutcomeUnknownError,
  ConnectionLostError,
  DatabaseUnavailableError,
  TransactionAbortedError,
  TransactionControlError,
  TransactionEndedError,
} from './errors.js';
import { guardedClient } from './guarded-client.js';
import { PreparedStatements } from './prepared-statements.js';
import { sendStatement, type Statement } from './send-statement.js';
import { isOutageState, sqlStateOf } from './sql-state.js';
import { transactionControlIn } from './transaction-control.js';
import { withinTime } from './within-time.js';

export type Isolation = 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE';

/** What pg 8.23 reports after each answer: idle, in a transaction, in a failed transaction. */
type TransactionStatus = 'I' | 'T' | 'E' | null;
type Client = ClientBase & {
  getTransactionStatus(): TransactionStatus;
  connection: { stream: Duplex };
};

/** Of every connection: a statement has the same name on each. */
const statements = new PreparedStatements();

const COMMIT: Statement = { text: 'COMMIT' };

/** How long COMMIT and ROLLBACK may take before the connection counts as lost. */
const END_TIMEOUT_MS = 30_000;

/** A query runner whose failure to connect says so, apart from every other error. */
export class PooledQueryRunner extends PostgresQueryRunner {
  override async connect(): Promise<Client> {
    try {
      return (await super.connect()) as Client;
    } catch (error) {
      throw new DatabaseUnavailableError(error);
    }
  }
}

/**
 * The one connection of one handler's transaction. TypeORM hands it to every repository, manager and
 * query builder that is used while the transaction is ambient; none of them can end or release it.
 */
export class TransactionQueryRunner extends PooledQueryRunner {
  private static readonly logger = new Logger('Transaction');
  private client!: Client;
  private guarded: Client | undefined;
  private connecting = false;
  /** What TypeORM sends a checked statement on. */
  private readonly sender = {
    query: (text: string, values?: unknown[]): Promise<QueryResult> =>
      sendStatement(this.client, { name: statements.nameOf(text, values), text, values }),
  };
  private begun: Promise<unknown> = Promise.resolve();
  private sealed = false;
  private running = 0;
  private lost: Error | undefined;
  private lastFailure: unknown;
  private refused: TransactionControlError | undefined;
  private readonly onLost = (error: Error): void => {
    this.lost ??= error;
  };

  constructor(dataSource: DataSource) {
    super(dataSource.driver as PostgresDriver, 'master');
    Object.assign(this, { manager: dataSource.createEntityManager(this) });
  }

  /**
   * Takes a connection and sends BEGIN without waiting for its answer: the connection pipelines, so
   * that the statement that follows at once shares the round trip, and the write to the socket.
   */
  async begin(isolation: Isolation): Promise<void> {
    this.client = await super.connect();
    this.client.on('error', this.onLost);
    const { stream } = this.client.connection;
    stream.cork();
    process.nextTick(() => stream.uncork());
    // Named, because a server may have another default, under which a lost claim is an error.
    this.begun = sendStatement(this.client, { text: `BEGIN ISOLATION LEVEL ${isolation}` });
    // It is awaited before anything can commit; until then a failure must not be unhandled.
    this.begun.catch(() => undefined);
    this.isTransactionActive = true;
    this.transactionDepth = 1;
  }

  /** Runs a statement of the template's own, prepared by name, past TypeORM's bookkeeping. */
  async execute<Row extends object>(statement: Statement): Promise<QueryResult<Row>> {
    try {
      const result = await sendStatement<Row>(this.client, statement);
      await this.begun;
      return result;
    } catch (error) {
      throw this.explain(error);
    }
  }

  /** The raw connection, for code that asks for it. */
  override async connect(): Promise<Client> {
    if (this.connecting) {
      this.connecting = false;
      return this.sender as Client;
    }
    this.checkNotEnded();
    return (this.guarded ??= guardedClient(this.client, (statement) => this.check(statement)));
  }

  override async query(sql: string, parameters?: unknown[], structured = false): Promise<never> {
    this.check(sql);
    this.running++;
    // The statement is checked; TypeORM's own first step is to connect, before it waits for anything.
    this.connecting = true;
    try {
      return (await super.query(sql, parameters as never, structured)) as never;
    } catch (error) {
      this.lastFailure = error;
      throw this.explain(error);
    } finally {
      this.running--;
    }
  }

  /** Repositories release what they took from the data source; this connection is not theirs. */
  override async release(): Promise<void> {}

  /** From here on no query joins any more. */
  seal(): void {
    if (!this.sealed && this.running > 0) {
      TransactionQueryRunner.logger.error(
        `The handler returned while ${this.running} of its queries were running: await them.`,
      );
    }
    this.sealed = true;
  }

  /**
   * Commits, and believes it only when PostgreSQL answers COMMIT: an aborted transaction answers
   * ROLLBACK, without an error.
   */
  async commit(): Promise<void> {
    await this.begun;
    if (this.lost !== undefined) {
      throw new ConnectionLostError(this.lost);
    }
    if (this.refused !== undefined) {
      throw this.refused;
    }
    const status = this.client.getTransactionStatus();
    if (status === 'E') {
      throw new TransactionAbortedError(this.lastFailure);
    }
    if (status === 'I') {
      throw new TransactionControlError('COMMIT or ROLLBACK was run');
    }
    const answer = await withinTime(END_TIMEOUT_MS, sendStatement(this.client, COMMIT)).catch(
      (error: unknown) => {
        throw isRefusal(error) ? error : new CommitOutcomeUnknownError(error);
      },
    );
    if (answer.command !== 'COMMIT') {
      throw new TransactionAbortedError(this.lastFailure);
    }
  }

  /** Rolls back and returns the connection; destroys it when that fails. Never throws. */
  async rollback(): Promise<void> {
    try {
      if (this.lost === undefined && this.client.getTransactionStatus() !== 'I') {
        await withinTime(END_TIMEOUT_MS, this.client.query('ROLLBACK'));
      }
      this.giveBack();
    } catch (error) {
      this.destroy(error);
    }
  }

  /** Returns a healthy connection to the pool. */
  giveBack(): void {
    this.end(this.lost);
  }

  /** Closes the connection instead of returning it: its state is not known. */
  destroy(reason: unknown): void {
    this.end(reason instanceof Error ? reason : new Error(String(reason)));
    // The pool ends it after the answers to what was sent, and those may never come.
    this.client?.connection.stream.destroy();
  }

  private end(reason: Error | undefined): void {
    this.sealed = true;
    this.isTransactionActive = false;
    this.client?.removeListener('error', this.onLost);
    void this['releasePostgresConnection'](reason);
  }

  /** A refused statement dooms the transaction, also when its error is caught: it was to end here. */
  private check(sql: string): void {
    this.checkNotEnded();
    const control = transactionControlIn(sql);
    if (control !== undefined) {
      this.refused = new TransactionControlError(control);
      throw this.refused;
    }
  }

  private checkNotEnded(): void {
    if (this.sealed) {
      const error = new TransactionEndedError();
      TransactionQueryRunner.logger.error(error);
      throw error;
    }
  }

  /** A query on a broken connection fails in many ways; the loss itself is what matters. */
  private explain(error: unknown): unknown {
    return this.lost === undefined ? error : new ConnectionLostError(this.lost);
  }
}

/** PostgreSQL answered COMMIT with an error of its own, so the transaction is rolled back. */
function isRefusal(error: unknown): boolean {
  const state = sqlStateOf(error);
  // 40003 says itself that the outcome is unknown; an outage may strike after the commit.
  return state !== undefined && state !== '40003' && !isOutageState(state);
}
