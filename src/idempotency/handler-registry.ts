import { Injectable } from '@nestjs/common';
import type { Handler } from './handler.js';

/** The idempotent handlers of the service, by class and method. Filled once, at start. */
@Injectable()
export class HandlerRegistry {
  private readonly byMethod = new Map<object, Map<object, Handler>>();

  add(controller: object, method: object, handler: Handler): void {
    const methods = this.byMethod.get(controller) ?? new Map<object, Handler>();
    this.byMethod.set(controller, methods.set(method, handler));
  }

  /** Undefined for a handler that the start has refused, or has not come to yet. */
  find(controller: object, method: object): Handler | undefined {
    return this.byMethod.get(controller)?.get(method);
  }

  get(controller: object, method: object): Handler {
    const handler = this.find(controller, method);
    if (handler === undefined) {
      throw new Error(
        'A message reached an idempotent handler before the start was complete. ' +
          'Call app.init() before the microservice listens, as main.ts does.',
      );
    }
    return handler;
  }

  all(): Handler[] {
    return [...this.byMethod.values()].flatMap((methods) => [...methods.values()]);
  }
}
