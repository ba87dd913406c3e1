import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { defer, lastValueFrom, type Observable } from 'rxjs';
import { HandlerRegistry } from './handler-registry.js';
import { IdempotentProcessor } from './idempotent-processor.js';

/** Puts the processor around a decorated handler in Nest's pipeline: after guards, before pipes. */
@Injectable()
export class IdempotencyInterceptor implements NestInterceptor {
  constructor(
    private readonly handlers: HandlerRegistry,
    private readonly processor: IdempotentProcessor,
  ) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const handler = this.handlers.get(context.getClass(), context.getHandler());
    const payload: unknown = context.switchToRpc().getData();
    return defer(() =>
      this.processor.process(handler, payload, () =>
        // handle() is called inside the transaction's async context; called outside of it, the handler
        // would not see the transaction. A handler that returns EMPTY has no last value.
        lastValueFrom(next.handle(), { defaultValue: undefined }),
      ),
    );
  }
}
