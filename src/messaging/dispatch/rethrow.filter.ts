import { Catch, type ArgumentsHost } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { throwError, type Observable } from 'rxjs';

/**
 * Lets an error of a message handler pass as it is: Nest turns it into "Internal server error", which
 * says nothing about whether to retry. HTTP keeps Nest's answer.
 */
@Catch()
export class RethrowFilter extends BaseExceptionFilter {
  override catch(exception: unknown, host: ArgumentsHost): Observable<never> | void {
    if (host.getType() === 'rpc') {
      return throwError(() => exception);
    }
    return super.catch(exception, host);
  }
}
