import { Controller, Injectable } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { Column, Entity, PrimaryColumn, type Repository } from 'typeorm';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import {
  createTestApp,
  createTestBroker,
  createTestDatabase,
  eventually,
  useCleanup,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

interface Order {
  orderId: string;
  fail?: number;
}

@Entity('effect')
class Effect {
  @PrimaryColumn('text') id!: string;
  @Column('text') note!: string;
}

@Injectable()
@Controller()
class Orders {
  runs = 0;
  constructor(@InjectRepository(Effect) private readonly effects: Repository<Effect>) {}

  @EventPattern<string>('order.placed')
  @IdempotentHandler<Order>((order) => order.orderId)
  async onOrder(@Payload() order: Order): Promise<void> {
    this.runs++;
    await this.effects.insert({ id: `${order.orderId}-${this.runs}`, note: 'x' });
    if (this.runs <= (order.fail ?? 0)) {
      throw new Error('fails after its effect');
    }
  }
}

const cleanup = useCleanup();
let db: TestDatabase;
let broker: TestBroker;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker());
  await db.query('CREATE TABLE effect (id text PRIMARY KEY, note text NOT NULL)');
  cleanup.use(
    await createTestApp({
      databaseUrl: db.url,
      rabbitmqUrl: broker.url,
      controllers: [Orders],
      entities: [Effect],
    }),
  );
});

it('commits the effect of the run that succeeds and nothing of those that fail', async () => {
  await broker.publish('events', 'order.placed', { orderId: 'A', fail: 2 });
  await eventually(async () =>
    expect(await db.query('SELECT id FROM effect')).toEqual([{ id: 'A-3' }]),
  );
  expect(await db.query('SELECT consumer, key FROM processed_message')).toEqual([
    { consumer: 'commissions/order.placed', key: 'A' },
  ]);
});
