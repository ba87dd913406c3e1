/** A failure that the reader can act on: the message is all that the command line prints. */
export class DemoError extends Error {
  override readonly name = 'DemoError';
}

/** Ended by a signal; what was opened is given back all the same. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';

  constructor(readonly exitCode: number) {
    super('Interrupted.');
  }
}
