import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { HealthController } from './health.controller.js';
import { MetricsController } from './metrics.controller.js';
import { ReadinessIndicator } from './readiness.indicator.js';

@Module({
  imports: [TerminusModule],
  controllers: [HealthController, MetricsController],
  providers: [ReadinessIndicator],
})
export class HealthModule {}
