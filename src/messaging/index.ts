export {
  HandlerOptionsError,
  PermanentError,
  RetryLaterError,
  TopologyError,
  UnroutableMessageError,
} from './errors.js';
export { EventPublisher, type PublishOptions } from './event-publisher.js';
export type { Classify, Failure } from './failure.js';
export {
  ConsumeFrom,
  Ordered,
  Retry,
  type QueueOptions,
  type RetryOptions,
} from './handler-options.js';
export { MessagingModule } from './messaging.module.js';
export type { MessagingOptions } from './messaging.options.js';
export { ReliableRmqServer } from './reliable-rmq.server.js';
