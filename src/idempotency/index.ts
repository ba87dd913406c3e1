export type { Duration } from '../duration/index.js';
export {
  InvalidFingerprintError,
  InvalidKeyError,
  KeyBusyError,
  KeyReuseError,
  RejectedMessageError,
  StartupFaultsError,
} from './errors.js';
export { Evidence } from './evidence/evidence.js';
export type { FingerprintSource } from './fingerprint.js';
export {
  IdempotentHandler,
  NaturallyIdempotent,
  type IdempotentHandlerOptions,
} from './idempotent-handler.decorator.js';
export { IdempotencyModule } from './idempotency.module.js';
export type { IdempotencyOptions } from './idempotency.options.js';
export { HandlerRegistry } from './handler-registry.js';
export { IdempotentProcessor } from './idempotent-processor.js';
export type { Handler } from './handler.js';
export type { Purgeable } from './retention/purgeable.js';
export type { KeyPart, KeySource } from './key.js';
