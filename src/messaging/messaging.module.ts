import { Global, Module, type DynamicModule, type FactoryProvider } from '@nestjs/common';
import { APP_FILTER, APP_INTERCEPTOR } from '@nestjs/core';
import { ConfirmedPublisher } from './publish/confirmed-publisher.js';
import { DeadLetters } from './dead-letters/dead-letters.js';
import { DeliveryInterceptor } from './dispatch/delivery.interceptor.js';
import { EventPublisher } from './publish/event-publisher.js';
import { MESSAGING_OPTIONS, type MessagingOptions } from './messaging.options.js';
import { ReliableRmqServer } from './consume/reliable-rmq.server.js';
import { RethrowFilter } from './dispatch/rethrow.filter.js';

/** Global, so that any feature can publish. */
@Global()
@Module({})
export class MessagingModule {
  static forRootAsync(
    options: Pick<FactoryProvider<MessagingOptions>, 'inject' | 'useFactory'>,
  ): DynamicModule {
    return {
      module: MessagingModule,
      providers: [
        { provide: MESSAGING_OPTIONS, ...options },
        ConfirmedPublisher,
        EventPublisher,
        DeadLetters,
        ReliableRmqServer,
        { provide: APP_INTERCEPTOR, useClass: DeliveryInterceptor },
        { provide: APP_FILTER, useClass: RethrowFilter },
      ],
      exports: [EventPublisher, DeadLetters, ReliableRmqServer],
    };
  }
}
