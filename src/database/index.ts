export {
  inTransaction,
  joinAmbientTransaction,
  outsideTransaction,
  type TransactionOptions,
} from './ambient-transaction.js';
export { dataSourceOptions, type DatabaseOptions } from './data-source.js';
export { DatabaseModule } from './database.module.js';
export {
  CommitOutcomeUnknownError,
  ConnectionLostError,
  DatabaseSilentError,
  DatabaseUnavailableError,
  PreparedStatementLostError,
  TransactionAbortedError,
  TransactionControlError,
  TransactionEndedError,
  TransactionTimeoutError,
} from './errors.js';
export { isWritable, migrate, pendingMigrations } from './schema.js';
export {
  isDatabaseOutage,
  isLockTimeout,
  isSerializationFailure,
  sqlStateOf,
} from './sql-state.js';
export type { Isolation, TransactionQueryRunner } from './transaction-query-runner.js';
export { withinTime } from './within-time.js';
