import type { MessageHandler } from '@nestjs/microservices';
import { isObservable, lastValueFrom } from 'rxjs';
import type { DeliveryContext } from './delivery-context.js';
import { UnprocessableMessageError } from '../errors.js';

/** Runs one handler for one message. Rejects with what the handler really threw. */
export type RunHandler = (
  handler: MessageHandler,
  data: unknown,
  context: DeliveryContext,
) => Promise<unknown>;

/** Nest's whole pipeline around a handler: guards, interceptors, pipes, exception filters. */
export const runHandler: RunHandler = async (handler, data, context) => {
  let result: unknown;
  try {
    const returned: unknown = await handler(data, context);
    result = isObservable(returned)
      ? await lastValueFrom(returned, { defaultValue: undefined })
      : returned;
  } catch (error) {
    throw context.failure?.error ?? error;
  }
  // An exception filter may have swallowed the error; what counts is what the handler did.
  if (context.failure !== undefined) {
    throw context.failure.error;
  }
  if (!context.entered) {
    throw new UnprocessableMessageError('guard-refused', 'a guard refused the message');
  }
  return result;
};
