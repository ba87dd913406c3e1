import { Module, StandardSchemaValidationPipe } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_PIPE } from '@nestjs/core';
import { DataSource } from 'typeorm';
import { CommissionsModule } from './commissions/index.js';
import { appConfig, type AppConfig } from './config/index.js';
import { DatabaseModule, isWritable } from './database/index.js';
import { classify } from './failures.js';
import { HealthModule } from './health/index.js';
import { Evidence, IdempotencyModule } from './idempotency/index.js';
import { MessagingModule, ReliableRmqServer } from './messaging/index.js';

/** What every service of this template has. Configuration becomes options here and nowhere else. */
@Module({
  imports: [
    ConfigModule.forRoot({ isGlobal: true, ignoreEnvFile: true, load: [appConfig] }),
    DatabaseModule.forRootAsync({
      inject: [appConfig.KEY],
      useFactory: ({ databaseUrl, serviceName, poolSize, preparedStatements }: AppConfig) => ({
        url: databaseUrl,
        applicationName: serviceName,
        poolSize,
        preparedStatements,
      }),
    }),
    IdempotencyModule.forRootAsync({
      inject: [appConfig.KEY, ReliableRmqServer],
      useFactory: (config: AppConfig, server: ReliableRmqServer) => ({
        serviceName: config.serviceName,
        poolSize: config.poolSize,
        consumerDelayMs: config.consumerDelayMs,
        reprocessingMs: config.reprocessingMs,
        purgeIntervalMs: config.purgeIntervalMs,
        isConsuming: (pattern) => server.isConsuming(pattern),
        transport: () => server.plan(),
      }),
    }),
    MessagingModule.forRootAsync({
      inject: [appConfig.KEY, DataSource, Evidence],
      useFactory: (config: AppConfig, dataSource: DataSource, evidence: Evidence) => ({
        url: config.rabbitmqUrl,
        queue: config.serviceName,
        exchange: config.eventsExchange,
        concurrency: config.concurrency,
        retryDelaysMs: config.retryDelaysMs,
        retryJitter: config.retryJitter,
        crashLimit: config.crashLimit,
        shutdownGraceMs: config.shutdownGraceMs,
        classify,
        onDeadLetter: (consumer: string) => evidence.deadLetter(consumer),
        isRecovered: () => isWritable(dataSource),
      }),
    }),
    HealthModule,
  ],
  providers: [{ provide: APP_PIPE, useClass: StandardSchemaValidationPipe }],
})
export class PlatformModule {}

/** The map: the platform, and one module for each feature. */
@Module({ imports: [PlatformModule, CommissionsModule] })
export class AppModule {}
