import 'reflect-metadata';
import { Controller, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { EventPattern, Payload } from '@nestjs/microservices';
import { DataSource } from 'typeorm';
import { PlatformModule } from '../../src/app.module.js';
import { CommissionsModule } from '../../src/commissions/index.js';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { ReliableRmqServer } from '../../src/messaging/index.js';
import { serve } from '../../src/start.js';
import { runContender } from './contender.js';
import { commissionOf, INSERT_COMMISSION, type Sale } from './effects.js';
import { ROUTING_KEYS, type RoutingKey, type RunSettings } from './run-settings.js';

@Controller()
class BenchConsumer {
  constructor(private readonly dataSource: DataSource) {}

  @EventPattern<RoutingKey>(ROUTING_KEYS.insert)
  @IdempotentHandler<Sale>((sale) => sale.saleId)
  async onInsert(@Payload() sale: Sale): Promise<void> {
    await this.dataSource.query(INSERT_COMMISSION, commissionOf(sale));
  }
}

/** The service as it is shipped, with one more handler. */
@Module({ imports: [PlatformModule, CommissionsModule], controllers: [BenchConsumer] })
class BenchModule {}

/** (e) and (h): the whole service, configured through its environment. */
await runContender(async (settings) => {
  Object.assign(process.env, environmentOf(settings));
  const app = await NestFactory.create(BenchModule, {
    abortOnError: false,
    logger: ['error', 'warn'],
  });
  await serve(app);
  return async () => {
    await app.get(ReliableRmqServer).close();
    await app.close();
  };
});

function environmentOf(settings: RunSettings): Record<string, string> {
  return {
    DATABASE_URL: settings.databaseUrl,
    RABBITMQ_URL: settings.rabbitmqUrl,
    SERVICE_NAME: settings.queue,
    EVENTS_EXCHANGE: settings.exchange,
    CONSUMER_CONCURRENCY: String(settings.concurrency),
    PORT: '0',
  };
}
