import 'reflect-metadata';
import { hash } from 'node:crypto';
import { Controller, Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Ctx, EventPattern, Payload, RmqContext, Transport } from '@nestjs/microservices';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { Channel, ConsumeMessage } from 'amqplib';
import { DataSource, type EntityManager } from 'typeorm';
import { runContender } from './contender.js';
import { ADD_TO_BALANCE, commissionCents, commissionOf, type Sale } from './effects.js';
import { ROUTING_KEYS, type RoutingKey, type RunSettings } from './run-settings.js';
import { Commission, ProcessedMessage } from './usual-entities.js';

const CONSUMER = 'bench/sale';
const RETENTION_MS = 90 * 86_400_000;

/** (c): ServerRMQ with manual acknowledgement, TypeORM repositories in a transaction. */
@Controller()
class SalesConsumer {
  constructor(private readonly dataSource: DataSource) {}

  @EventPattern<RoutingKey>(ROUTING_KEYS.insert)
  async onInsert(@Payload() sale: Sale, @Ctx() context: RmqContext): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      if (await claim(manager, sale)) {
        await postCommission(manager, sale);
      }
    });
    acknowledge(context);
  }

  @EventPattern<RoutingKey>(ROUTING_KEYS.example)
  async onExample(@Payload() sale: Sale, @Ctx() context: RmqContext): Promise<void> {
    await this.dataSource.transaction(async (manager) => {
      if (await claim(manager, sale)) {
        await postCommission(manager, sale);
        await manager.query(ADD_TO_BALANCE, [sale.salespersonId, commissionCents(sale)]);
      }
    });
    acknowledge(context);
  }
}

async function claim(manager: EntityManager, sale: Sale): Promise<boolean> {
  const inserted = await manager
    .createQueryBuilder()
    .insert()
    .into(ProcessedMessage)
    .values({
      consumer: CONSUMER,
      key: sale.saleId,
      fingerprint: hash('sha256', JSON.stringify(sale), 'buffer'),
      expiresAt: new Date(Date.now() + RETENTION_MS),
    })
    .orIgnore()
    .returning('key')
    .execute();
  return (inserted.raw as unknown[]).length === 1;
}

async function postCommission(manager: EntityManager, sale: Sale): Promise<void> {
  const [saleId, salespersonId, productType, amountCents, rateBps] = commissionOf(sale);
  await manager
    .getRepository(Commission)
    .insert({ saleId, salespersonId, productType, amountCents, rateBps });
}

function acknowledge(context: RmqContext): void {
  const channel = context.getChannelRef() as Channel;
  channel.ack(context.getMessage() as ConsumeMessage);
}

@Module({})
class SalesModule {
  static forRun({ databaseUrl, concurrency }: RunSettings): DynamicModule {
    const database = TypeOrmModule.forRoot({
      type: 'postgres',
      url: databaseUrl,
      poolSize: concurrency,
      entities: [Commission, ProcessedMessage],
    });
    return { module: SalesModule, imports: [database], controllers: [SalesConsumer] };
  }
}

await runContender(async (settings) => {
  const app = await NestFactory.createMicroservice(SalesModule.forRun(settings), {
    logger: ['error', 'warn'],
    transport: Transport.RMQ,
    options: {
      urls: [settings.rabbitmqUrl],
      queue: settings.queue,
      noAssert: true,
      noAck: false,
      prefetchCount: settings.concurrency,
    },
  });
  await app.listen();
  return () => app.close();
});
