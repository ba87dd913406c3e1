import { Controller, Get } from '@nestjs/common';
import { HealthCheck, HealthCheckService, type HealthCheckResult } from '@nestjs/terminus';
import { ReadinessIndicator } from './readiness.indicator.js';

@Controller('health')
export class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly readiness: ReadinessIndicator,
  ) {}

  /** Whether the process is worth keeping. Depends on no server: restarting it would not bring one back. */
  @Get('live')
  @HealthCheck()
  live(): Promise<HealthCheckResult> {
    return this.health.check([]);
  }

  /** Whether the process does its work: it consumes, and can write what it consumes. */
  @Get('ready')
  @HealthCheck()
  ready(): Promise<HealthCheckResult> {
    return this.health.check([
      () => this.readiness.consumer('consumer'),
      () => this.readiness.database('database'),
      () => this.readiness.migrations('migrations'),
    ]);
  }
}
