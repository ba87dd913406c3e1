import { ExecutedStatements, StatementOutcomes } from './pg-wire.js';
import type { Direction } from './proxied-connection.js';
import type { Moment, Watch } from './watch.js';

/** The INSERT of a key, or the name of the statement where nobody saw it being prepared. */
export const claim = /^claim$|INTO\s+"?processed_message/i;

const begin = /^(?:\s|--[^\n]*\n|\/\*.*?\*\/)*(?:begin|start)\b/is;
/** COMMIT or END, alone behind comments, or as the last of several statements. */
const commit = /^(?:\s|--[^\n]*\n|\/\*.*?\*\/)*(?:commit|end)\b|;\s*(?:commit|end)\s*;?\s*$/is;

/** COMMITs of transactions with a statement like this, as they are sent; alone or in one message with others. */
export function sentCommit(onlyAfter: RegExp): Moment {
  return () => {
    const commits = new Commits(onlyAfter);
    return {
      sees: (chunk, direction) => (direction === 'toServer' ? commits.in(chunk) : 0),
    };
  };
}

/** The answers to these: a tag, or an error. */
export function answeredCommit(onlyAfter: RegExp): Moment {
  return () => {
    const commits = new Commits(onlyAfter);
    return answered((chunk) => commits.in(chunk), /^(?:COMMIT|ROLLBACK|ERROR)$/);
  };
}

/** Answers to the INSERT of a key, which is the first that a transaction with one runs; not when it fails. */
export function answeredClaim(): Watch {
  const statements = new ExecutedStatements();
  return answered(
    (chunk) => statements.push(chunk).filter((sql) => claim.test(sql)).length,
    /^INSERT /,
  );
}

function answered(sent: (chunk: Buffer) => number, answer: RegExp): Watch {
  const outcomes = new StatementOutcomes();
  let waiting = 0;
  return {
    sees(chunk: Buffer, direction: Direction): number {
      if (direction === 'toServer') {
        waiting += sent(chunk);
        return 0;
      }
      let seen = 0;
      // Answers to statements before it still pass.
      for (const outcome of outcomes.push(chunk)) {
        if (waiting === 0) break;
        if (answer.test(outcome)) seen += 1;
        if (answer.test(outcome) || outcome === 'ERROR') waiting -= 1;
      }
      return seen;
    },
  };
}

class Commits {
  private readonly statements = new ExecutedStatements();
  private transaction: string[] = [];

  constructor(private readonly onlyAfter: RegExp) {}

  /** How many a chunk from the client contains. */
  in(chunk: Buffer): number {
    let found = 0;
    for (const sql of this.statements.push(chunk)) {
      if (begin.test(sql)) this.transaction = [];
      this.transaction.push(sql);
      if (!commit.test(sql)) continue;
      if (this.transaction.some((one) => this.onlyAfter.test(one))) found += 1;
      this.transaction = [];
    }
    return found;
  }
}
