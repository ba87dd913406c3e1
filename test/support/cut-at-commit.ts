import { ExecutedStatements, StatementOutcomes } from './pg-wire.js';
import type { Interceptor, ProxiedConnection, Verdict } from './proxied-connection.js';
import { takeTurns, type Turns } from './turns.js';

export interface CutAtCommitOptions extends Turns {
  /**
   * `before-server`: PostgreSQL never receives the COMMIT, and rolls back. `after-server`: it has committed,
   * and its answer is lost. The client cannot tell which.
   */
  when: 'before-server' | 'after-server';
  /** Counts only transactions in which a statement matches, so that background work stays out of it. */
  onlyAfter?: RegExp;
}

/** COMMIT or END, alone behind comments, or as the last of several statements. */
const commit = /^(?:\s|--[^\n]*\n|\/\*.*?\*\/)*(?:commit|end)\b|;\s*(?:commit|end)\s*;?\s*$/is;

/**
 * Cuts a connection to PostgreSQL exactly at a COMMIT, however it is sent and however the network splits it.
 * For connections without TLS.
 *
 * @example proxy.intercept(cutAtCommit({ when: 'after-server', onlyAfter: /processed_message/ }));
 */
export function cutAtCommit(options: CutAtCommitOptions): Interceptor {
  const watches = new WeakMap<ProxiedConnection, CommitWatch>();
  const isItsTurn = takeTurns(options);
  return (chunk, direction, connection) => {
    const watch = watches.get(connection) ?? new CommitWatch(options, isItsTurn);
    watches.set(connection, watch);
    return direction === 'toServer' ? watch.sent(chunk) : watch.answered(chunk);
  };
}

class CommitWatch {
  private readonly statements = new ExecutedStatements();
  private readonly outcomes = new StatementOutcomes();
  private transaction: string[] = [];
  private answerIsLost = false;

  constructor(
    private readonly options: CutAtCommitOptions,
    private readonly isItsTurn: () => boolean,
  ) {}

  sent(chunk: Buffer): Verdict {
    for (const sql of this.statements.push(chunk)) {
      this.transaction.push(sql);
      if (!commit.test(sql)) continue;
      const chosen = this.isWatched() && this.isItsTurn();
      this.transaction = [];
      if (!chosen) continue;
      if (this.options.when === 'before-server') return 'cut';
      this.answerIsLost = true;
    }
    return 'forward';
  }

  answered(chunk: Buffer): Verdict {
    // Answers to statements before the COMMIT still pass. The COMMIT's own is a tag, or an error.
    const settled = this.outcomes
      .push(chunk)
      .some((outcome) => ['COMMIT', 'ROLLBACK', 'ERROR'].includes(outcome));
    return settled && this.answerIsLost ? 'cut' : 'forward';
  }

  private isWatched(): boolean {
    const { onlyAfter } = this.options;
    return onlyAfter === undefined || this.transaction.some((sql) => onlyAfter.test(sql));
  }
}
