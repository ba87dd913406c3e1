import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { HealthController } from './health.controller.js';
import { MetricsController } from './metrics.controller.js';
import { ReadinessIndicator } from './readiness.indicator.js';

@Module({
  // A red probe is an answer, not an error: it is asked again and again during every start.
  imports: [TerminusModule.forRoot({ logger: false })],
  controllers: [HealthController, MetricsController],
  providers: [ReadinessIndicator],
})
export class HealthModule {}
