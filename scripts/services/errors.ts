/** A failure that the reader can act on: the message is all that the command line prints. */
export class ServicesError extends Error {
  override readonly name = 'ServicesError';
}

/** The text of whatever was thrown; an AggregateError of a refused connection has none of its own. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  const code = (error as NodeJS.ErrnoException).code;
  return error.message || code || error.name;
}
