import type { Duplex } from 'node:stream';
import type { ClientBase } from 'pg';
import { PostgresQueryRunner } from 'typeorm/driver/postgres/PostgresQueryRunner.js';
import { DatabaseUnavailableError } from './errors.js';

/** What pg 8.23 reports after each answer: idle, in a transaction, in a failed transaction. */
type TransactionStatus = 'I' | 'T' | 'E' | null;
export type Client = ClientBase & {
  getTransactionStatus(): TransactionStatus;
  connection: { stream: Duplex };
};

/** A query runner whose failure to connect says so, apart from every other error. */
export class PooledQueryRunner extends PostgresQueryRunner {
  override async connect(): Promise<Client> {
    try {
      return (await super.connect()) as Client;
    } catch (error) {
      throw new DatabaseUnavailableError(error);
    }
  }

  /** Closes the connection instead of returning it: its state is not known. */
  destroy(reason: unknown): void {
    this.giveUp(reason instanceof Error ? reason : new Error(String(reason)));
    // The pool ends it after the answers to what was sent, and those may never come.
    (this.databaseConnection as Client | undefined)?.connection.stream.destroy();
  }

  /** Returns the connection to the pool, which closes it when there is a reason. */
  protected giveUp(reason: Error | undefined): void {
    void this['releasePostgresConnection'](reason);
  }
}
