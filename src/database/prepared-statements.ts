import { createHash } from 'node:crypto';

/** PostgreSQL keeps each for as long as its connection lives, so their number is bounded. */
const MAX_STATEMENTS = 200;
/** How much of a statement is part of its name, and how much of its hash. */
const MAX_BEGIN = 50;
const HASH = 12;

/**
 * Statements that answer with rows stay unprepared: a migration that changes a column's type would fail
 * them on every connection that is open ("cached plan must not change result type").
 */
const WITHOUT_ROWS = /^\s*(?:insert|update|delete)\b(?![^]*\breturning\b)/i;

/**
 * Names for the statements that handlers send as text, by which PostgreSQL keeps them prepared. Parsing
 * and planning an INSERT for each message costs it more than running it.
 */
export class PreparedStatements {
  private readonly names = new Map<string, string>();

  /** The statement's name, or undefined when it is to be parsed each time. */
  nameOf(sql: string, parameters: readonly unknown[] | undefined): string | undefined {
    if (parameters === undefined || parameters.length === 0) {
      return undefined;
    }
    const known = this.names.get(sql);
    if (known !== undefined || this.names.size >= MAX_STATEMENTS || !WITHOUT_ROWS.test(sql)) {
      return known;
    }
    // Readable in pg_prepared_statements, within the 63 bytes that PostgreSQL keeps. Another process never
    // gives the same name to another statement: a pooler may hand its session on to us.
    const begin = sql
      .trim()
      .slice(0, MAX_BEGIN)
      .replaceAll(/[^\x20-\x7e]/g, ' ');
    const name = `${createHash('sha256').update(sql).digest('base64url').slice(0, HASH)} ${begin}`;
    this.names.set(sql, name);
    return name;
  }
}
