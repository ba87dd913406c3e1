export type { ChangeOptions, ChangeResult, Progress } from './dead-letters/change.js';
export type { DeadLetter } from './dead-letters/dead-letter.js';
export { DeadLetters, type ReplayOptions } from './dead-letters/dead-letters.js';
export {
  DeadLetterFilterError,
  DeadLettersBusyError,
  DeadLettersInterruptedError,
  NoDeadLetterQueueError,
} from './dead-letters/errors.js';
export type { DeadLetterFilter, DeadLetterSelection } from './dead-letters/filter.js';
export type { PastFailure } from './dead-letters/history.js';
export {
  HandlerOptionsError,
  PermanentError,
  RetryLaterError,
  TopologyError,
  UnroutableMessageError,
} from './errors.js';
export { EventPublisher, type PublishOptions } from './publish/event-publisher.js';
export type { Classify, Failure } from './settle/failure.js';
export {
  ConsumeFrom,
  Ordered,
  Retry,
  type QueueOptions,
  type RetryOptions,
} from './consume/handler-options.js';
export { MessagingModule } from './messaging.module.js';
export type { MessagingOptions } from './messaging.options.js';
export { ReliableRmqServer } from './consume/reliable-rmq.server.js';
