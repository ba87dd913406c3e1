import { Logger } from '@nestjs/common';
import type { QueryResult } from 'pg';
import type { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { preparesStatements } from './data-source.js';
import {
  CommitOutcomeUnknownError,
  ConnectionLostError,
  TransactionAbortedError,
  TransactionControlError,
  TransactionEndedError,
} from './errors.js';
import { guardedClient } from './guarded-client.js';
import { PooledQueryRunner, type Client } from './pooled-query-runner.js';
import { PreparedStatements } from './prepared-statements.js';
import { sendStatement, type Statement } from './send-statement.js';
import { isOutageState, sqlStateOf } from './sql-state.js';
import { transactionControlIn } from './transaction-control.js';
import { Unanswered } from './unanswered.js';
import { withinTime } from './within-time.js';

export type Isolation = 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE';

/** Of every connection: a statement has the same name on each. */
const statements = new PreparedStatements();

const COMMIT: Statement = { text: 'COMMIT' };

/** How long COMMIT and ROLLBACK may take before the connection counts as lost. */
const END_TIMEOUT_MS = 30_000;

/** How much later than PostgreSQL sends it an answer may be here. */
const ANSWER_GRACE_MS = 2_000;

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
      this.send({ name: statements.nameOf(text, values), text, values }),
  };
  private readonly unanswered = new Unanswered();
  private readonly prepares: boolean;
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
    this.prepares = preparesStatements(dataSource);
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
    this.begun = this.send({ text: `BEGIN ISOLATION LEVEL ${isolation}` });
    // It is awaited before anything can commit; until then a failure must not be unhandled.
    this.begun.catch(() => undefined);
    this.isTransactionActive = true;
    this.transactionDepth = 1;
  }

  /** Runs a statement of the template's own, prepared under its name, past TypeORM's bookkeeping. */
  async execute<Row extends object>(statement: Statement): Promise<QueryResult<Row>> {
    try {
      const result = await this.send<Row>(statement);
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

  /** The work is over: no query joins any more. */
  seal(): void {
    if (!this.sealed && this.running > 0) {
      TransactionQueryRunner.logger.error(
        `The handler returned while ${this.running} of its queries were running: await them.`,
      );
    }
    this.sealed = true;
  }

  /**
   * The work is past its time: no query joins any more. Waits for the answers to those that were sent.
   *
   * @param limitMs after which PostgreSQL cancels a statement, and answers that it did
   * @returns whether it does not answer at all
   */
  isSilent(limitMs: number): Promise<boolean> {
    this.sealed = true;
    return this.unanswered.areIgnored(limitMs + ANSWER_GRACE_MS);
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
    this.giveUp(this.lost);
  }

  protected override giveUp(reason: Error | undefined): void {
    this.sealed = true;
    this.isTransactionActive = false;
    this.client?.removeListener('error', this.onLost);
    super.giveUp(reason);
  }

  private send<Row extends object>({ name, text, values }: Statement): Promise<QueryResult<Row>> {
    this.unanswered.sent();
    const statement = { name: this.prepares ? name : undefined, text, values };
    return sendStatement(this.client, statement, this.unanswered.answered);
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
