/** Somebody else works on the dead letters of this service. */
export class DeadLettersBusyError extends Error {
  override readonly name = 'DeadLettersBusyError';

  constructor(queue: string, by: string) {
    super(
      `${queue} is in use by ${by}: wait until that has ended, or end it. After a crash or a cut ` +
        'network it ends by itself, within half a minute.',
    );
  }
}

/** There are no dead letters to work on, as their queue does not exist. */
export class NoDeadLetterQueueError extends Error {
  override readonly name = 'NoDeadLetterQueueError';

  constructor(queue: string) {
    super(`The queue ${queue} does not exist: check SERVICE_NAME, and start the service once.`);
  }
}

/** What was asked for cannot be what was meant. Nothing was changed. */
export class DeadLetterFilterError extends Error {
  override readonly name = 'DeadLetterFilterError';
}

/** RabbitMQ went away in the middle. What was done stays done; running it again goes on with the rest. */
export class DeadLettersInterruptedError extends Error {
  override readonly name = 'DeadLettersInterruptedError';

  /** @param done letters that were replayed or discarded before */
  constructor(
    readonly done: number,
    reason: string,
    options?: ErrorOptions,
  ) {
    super(
      `Interrupted after ${done} dead letters: ${reason} The others stay where they are; run it again to go on.`,
      options,
    );
  }
}

/** One letter cannot be replayed, and stays. Its message becomes the `why` of a failed letter. */
export class NotReplayableError extends Error {
  override readonly name = 'NotReplayableError';
}
