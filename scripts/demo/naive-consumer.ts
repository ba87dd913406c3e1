import 'reflect-metadata';
import { Controller, Get, Inject, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Ctx,
  EventPattern,
  Payload,
  Transport,
  type MicroserviceOptions,
  type RmqContext,
} from '@nestjs/microservices';
import type { Channel, ConsumeMessage } from 'amqplib';
import { Pool } from 'pg';
import { RATES_BPS, type Sale } from './sales.js';

/**
 * The consumer that people write first, for `npm run demo -- --naive`. It acknowledges by hand, after
 * the transaction, and remembers the messages that it has seen: by the id of the message, which is new
 * whenever a producer sends again, and in the memory of one process, which another one does not share
 * and which a crash empties.
 */
@Controller()
class NaiveConsumer {
  private readonly seen = new Set<string>();

  constructor(@Inject(Pool) private readonly pool: Pool) {}

  @EventPattern<string>('sale.completed')
  async onSaleCompleted(@Payload() sale: Sale, @Ctx() context: RmqContext): Promise<void> {
    const channel = context.getChannelRef() as Channel;
    const message = context.getMessage() as ConsumeMessage;
    const id = message.properties.messageId as string;
    if (!this.seen.has(id)) {
      await this.post(sale);
      this.seen.add(id);
    }
    channel.ack(message);
  }

  @Get('health/ready')
  ready(): string {
    return 'ok';
  }

  private async post(sale: Sale): Promise<void> {
    const rate = RATES_BPS[sale.productType];
    const cents = Math.round((sale.amountCents * rate) / 10_000);
    const client = await this.pool.connect();
    try {
      await client.query('BEGIN');
      await client.query(
        `INSERT INTO commission (sale_id, salesperson_id, product_type, amount_cents, rate_bps)
         VALUES ($1, $2, $3, $4, $5)`,
        [sale.saleId, sale.salespersonId, sale.productType, cents, rate],
      );
      await client.query(
        `INSERT INTO salesperson_balance VALUES ($1, $2) ON CONFLICT (salesperson_id)
         DO UPDATE SET total_cents = salesperson_balance.total_cents + excluded.total_cents`,
        [sale.salespersonId, cents],
      );
      await client.query('COMMIT');
    } catch (error) {
      await client.query('ROLLBACK');
      throw error;
    } finally {
      client.release();
    }
  }
}

const { DATABASE_URL, RABBITMQ_URL, SERVICE_NAME, EVENTS_EXCHANGE, PORT, CONSUMER_CONCURRENCY } =
  process.env;
const concurrency = Number(CONSUMER_CONCURRENCY);

@Module({
  controllers: [NaiveConsumer],
  providers: [
    {
      provide: Pool,
      useValue: new Pool({ connectionString: DATABASE_URL, max: concurrency }),
    },
  ],
})
class NaiveModule {}

const app = await NestFactory.create(NaiveModule, { logger: ['error', 'warn'] });
app.connectMicroservice<MicroserviceOptions>({
  transport: Transport.RMQ,
  options: {
    urls: [RABBITMQ_URL!],
    queue: SERVICE_NAME,
    queueOptions: { durable: true },
    exchange: EVENTS_EXCHANGE,
    exchangeType: 'topic',
    routingKey: 'sale.completed',
    noAck: false,
    prefetchCount: concurrency,
    // The shop publishes plain JSON, without Nest's envelope.
    deserializer: { deserialize: (sale: Sale) => ({ pattern: 'sale.completed', data: sale }) },
  },
});
await app.startAllMicroservices();
await app.listen(PORT!);
