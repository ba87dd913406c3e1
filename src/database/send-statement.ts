import pg, { type ClientBase, type QueryResult, type QueryResultRow } from 'pg';
import { PreparedStatementLostError } from './errors.js';

/**
 * The server does not know a statement that its client has prepared (26000), or knows one that its client
 * has not (42P05).
 */
const LOST = new Set(['26000', '42P05']);

/** A statement, under the name by which PostgreSQL keeps it prepared if it has one. */
export interface Statement {
  name?: string | undefined;
  text: string;
  values?: unknown[] | undefined;
}

/**
 * Sends a statement on a connection. The same as `client.query(statement)`, which a message pays four
 * times, without its detours: pg copies the object through property descriptors, and makes a further
 * promise to replace the stack of an error.
 */
export function sendStatement<Row extends QueryResultRow>(
  client: ClientBase,
  { name, text, values }: Statement,
  onAnswer?: () => void,
): Promise<QueryResult<Row>> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query<Row>(text, values as never);
    Object.assign(query, {
      name,
      callback: (error: Error | null, result: QueryResult<Row>) => {
        onAnswer?.();
        if (error === null || error === undefined) {
          resolve(result);
        } else {
          reject(explain(name, error));
        }
      },
    });
    client.query(query);
  });
}

function explain(name: string | undefined, error: Error): Error {
  const { code } = error as { code?: string };
  return name !== undefined && LOST.has(code ?? '')
    ? new PreparedStatementLostError(name, error)
    : error;
}
