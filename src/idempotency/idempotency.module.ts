import { Global, Module, type DynamicModule, type FactoryProvider } from '@nestjs/common';
import { DiscoveryModule } from '@nestjs/core';
import { Evidence } from './evidence/evidence.js';
import { ScheduleModule } from '@nestjs/schedule';
import { HandlerExplorer } from './handler-explorer.js';
import { HandlerRegistry } from './handler-registry.js';
import { IDEMPOTENCY_OPTIONS, type IdempotencyOptions } from './idempotency.options.js';
import { IdempotentProcessor } from './idempotent-processor.js';
import { ConsumerActivity } from './retention/consumer-activity.js';
import { Purge } from './retention/purge.js';
import { RetentionCheck } from './retention/retention-check.js';
import { RetentionSchedule } from './retention/retention-schedule.js';
import { StartupCheck } from './startup-check.js';

/** Global, because the decorator's interceptor is built in whichever module holds the handler. */
@Global()
@Module({})
export class IdempotencyModule {
  static forRootAsync(
    options: Pick<FactoryProvider<IdempotencyOptions>, 'inject' | 'useFactory'>,
  ): DynamicModule {
    return {
      module: IdempotencyModule,
      imports: [DiscoveryModule, ScheduleModule.forRoot()],
      providers: [
        { provide: IDEMPOTENCY_OPTIONS, ...options },
        Evidence,
        HandlerExplorer,
        HandlerRegistry,
        IdempotentProcessor,
        ConsumerActivity,
        Purge,
        RetentionCheck,
        RetentionSchedule,
        StartupCheck,
      ],
      exports: [Evidence, HandlerRegistry, IdempotentProcessor],
    };
  }
}
