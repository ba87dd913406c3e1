import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { catchError, type Observable } from 'rxjs';
import { DeliveryContext } from './delivery-context.js';

/**
 * Outermost in the pipeline: notes that a handler failed, and how. An exception filter of the
 * application may turn the error into something else, or swallow it; the message is settled by what
 * really happened.
 */
@Injectable()
export class DeliveryInterceptor implements NestInterceptor {
  intercept(execution: ExecutionContext, next: CallHandler): Observable<unknown> {
    const context: unknown =
      execution.getType() === 'rpc' ? execution.switchToRpc().getContext() : undefined;
    if (!(context instanceof DeliveryContext)) {
      return next.handle();
    }
    context.entered = true;
    return next.handle().pipe(
      catchError((error: unknown) => {
        context.failure = { error };
        throw error;
      }),
    );
  }
}
