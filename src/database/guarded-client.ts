import type { ClientBase } from 'pg';

/** The client belongs to a transaction, which alone releases it. */
const NOT_THEIRS = new Set<PropertyKey>(['release', 'end']);

/**
 * The raw connection of a transaction as code inside it may use it: each statement is checked before
 * it is sent, and to release or end it does nothing.
 *
 * @param check throws when the statement may not run
 */
export function guardedClient<Client extends ClientBase>(
  client: Client,
  check: (sql: string) => void,
): Client {
  const query = (...args: unknown[]): unknown => {
    check(textOf(args[0]));
    return (client.query as (...all: unknown[]) => unknown)(...args);
  };
  return new Proxy(client, {
    get: (target, name) => {
      if (name === 'query') {
        return query;
      }
      if (NOT_THEIRS.has(name)) {
        return async () => undefined;
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

/** A statement is a text, or an object that holds one. */
function textOf(statement: unknown): string {
  const text =
    typeof statement === 'object' && statement !== null && 'text' in statement
      ? statement.text
      : statement;
  return typeof text === 'string' ? text : '';
}
