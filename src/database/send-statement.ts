import pg, { type ClientBase, type QueryResult, type QueryResultRow } from 'pg';

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
): Promise<QueryResult<Row>> {
  return new Promise((resolve, reject) => {
    const query = new pg.Query<Row>(text, values as never);
    Object.assign(query, {
      name,
      callback: (error: Error | null, result: QueryResult<Row>) =>
        error === null || error === undefined ? resolve(result) : reject(error),
    });
    client.query(query);
  });
}
