/** What every refusal of this folder has in common: the message itself is at fault. */
export abstract class RejectedMessageError extends Error {
  /** Short and stable: becomes the dead letter's reason. */
  abstract readonly reason: string;
}

/** The message has no usable business key. Another delivery of it will not have one either. */
export class InvalidKeyError extends RejectedMessageError {
  override readonly name = 'InvalidKeyError';
  override readonly reason = 'invalid-key';

  constructor(consumer: string, fault: string, cause?: unknown) {
    super(`${consumer}: no business key: ${fault}.`, { cause });
  }
}

/** The payload cannot be fingerprinted, or the handler's `fingerprint` function refuses it. */
export class InvalidFingerprintError extends RejectedMessageError {
  override readonly name = 'InvalidFingerprintError';
  override readonly reason = 'invalid-payload';

  constructor(consumer: string, fault: string, cause?: unknown) {
    super(`${consumer}: no fingerprint: ${fault}.`, { cause });
  }
}

/**
 * The key was processed already, with a different payload. Discarding it as a duplicate could lose a
 * sale; processing it could pay one twice. Somebody has to look.
 */
export class KeyReuseError extends RejectedMessageError {
  override readonly name = 'KeyReuseError';
  override readonly reason = 'key-reuse';

  constructor(
    readonly consumer: string,
    readonly key: string,
    readonly processedAt: Date,
  ) {
    super(
      `${consumer}: key ${key} was processed at ${processedAt.toISOString()} with a different payload. ` +
        'If the difference does not matter, name the fields that do with the `fingerprint` option.',
    );
  }
}

/** Another process is handling the same key for longer than the lock timeout. */
export class KeyBusyError extends Error {
  override readonly name = 'KeyBusyError';

  constructor(
    readonly consumer: string,
    readonly key: string,
    cause: unknown,
  ) {
    super(`${consumer}: key ${key} is being processed elsewhere, waited the lock timeout.`, {
      cause,
    });
  }
}

/** The service is not safe to start. Lists every fault with what to do about it. */
export class StartupFaultsError extends Error {
  override readonly name = 'StartupFaultsError';

  constructor(readonly faults: readonly string[]) {
    super(['The service does not start:', ...faults.map((fault) => `  - ${fault}`)].join('\n'));
  }
}
