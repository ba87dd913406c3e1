import {
  Injectable,
  type CallHandler,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { lastValueFrom, of, type Observable } from 'rxjs';
import { HandlerRegistry } from './handler-registry.js';
import { IdempotentProcessor } from './idempotent-processor.js';

/**
 * The transport's context, which is told whose message it was and how the handler really ended. An
 * interceptor of the application around this one may swallow its error, and the message would be settled
 * as if its effect were stored.
 */
interface Witness {
  consumer: string;
  failure: { error: unknown } | undefined;
}

/** Puts the processor around a decorated handler in Nest's pipeline: after guards, before pipes. */
@Injectable()
export class IdempotencyInterceptor implements NestInterceptor {
  constructor(
    private readonly handlers: HandlerRegistry,
    private readonly processor: IdempotentProcessor,
  ) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const handler = this.handlers.get(context.getClass(), context.getHandler());
    const payload: unknown = context.switchToRpc().getData();
    try {
      const reply = await this.processor.process(handler, payload, () =>
        // handle() is called inside the transaction's async context; called outside of it, the handler
        // would not see the transaction. A handler that returns EMPTY has no last value.
        lastValueFrom(next.handle(), { defaultValue: undefined }),
      );
      tellWitness(context, { consumer: handler.consumer, failure: undefined });
      return of(reply);
    } catch (error) {
      tellWitness(context, { consumer: handler.consumer, failure: { error } });
      throw error;
    }
  }
}

function tellWitness(context: ExecutionContext, testimony: Witness): void {
  const transport: unknown = context.switchToRpc().getContext();
  if (typeof transport === 'object' && transport !== null) {
    Object.assign(transport, testimony);
  }
}
