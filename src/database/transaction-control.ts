/** One of these must occur for anything to be found; most statements hold none. */
const CANDIDATE = /\b(?:commit|end|abort|begin|start|prepare|rollback)\b/i;

const CONTROL =
  /^\s*(commit|end|abort|begin|start\s+transaction|prepare\s+transaction|rollback(?!\s+(work\s+|transaction\s+)?to\b))\b/i;

/** What is not code: text, quoted names, comments up to the end of the line. */
const NOT_CODE =
  /(?<![\w$])e'(?:[^'\\]|\\[^]|'')*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|(?<![\w$])\$([a-z_][\w]*)?\$[^]*?\$\1\$|--[^\n]*|\/\*/iy;

/**
 * The statement in `sql` that ends or begins a transaction, of however many it has and behind whatever
 * comments; undefined when there is none. Savepoints are no such statements.
 *
 * @example transactionControlIn('SELECT 1; /* done *\/ commit') // 'COMMIT'
 */
export function transactionControlIn(sql: string): string | undefined {
  if (!CANDIDATE.test(sql)) {
    return undefined;
  }
  for (const statement of codeOf(sql).split(';')) {
    const control = CONTROL.exec(statement)?.[1];
    if (control !== undefined) {
      return control.toUpperCase();
    }
  }
  return undefined;
}

/** The text with a space in the place of everything that is not code. */
function codeOf(sql: string): string {
  let code = '';
  for (let at = 0; at < sql.length;) {
    NOT_CODE.lastIndex = at;
    const found = NOT_CODE.exec(sql)?.[0];
    if (found === undefined) {
      code += sql[at++];
    } else {
      code += ' ';
      at = found === '/*' ? endOfComment(sql, at) : at + found.length;
    }
  }
  return code;
}

/** PostgreSQL's block comments nest. */
function endOfComment(sql: string, from: number): number {
  let depth = 0;
  for (let at = from; at < sql.length; at++) {
    const pair = sql.slice(at, at + 2);
    if (pair === '/*' || pair === '*/') {
      depth += pair === '/*' ? 1 : -1;
      at++;
    }
    if (depth === 0) {
      return at + 1;
    }
  }
  return sql.length;
}
