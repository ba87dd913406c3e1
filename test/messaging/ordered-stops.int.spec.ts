import { Controller } from '@nestjs/common';
import { Ctx, EventPattern, Payload, type RmqContext } from '@nestjs/microservices';
import type { ConsumeMessage } from 'amqplib';
import { DataSource } from 'typeorm';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { Ordered, Retry } from '../../src/messaging/index.js';
import { createTestApp, eventually, holds, useCleanup, type TestApp } from '../support/index.js';
import { deadLetter, gate, Plans, startOrders, type Order, type OrderService } from './orders.js';

const QUEUE = 'commissions.ledger';
const CRASH_LIMIT = 3;

/** The orders whose handler was given them at their first delivery. */
const untouched = new Set<string>();

@Controller()
class Ledger {
  constructor(
    private readonly dataSource: DataSource,
    private readonly plans: Plans,
  ) {}

  @EventPattern<string>('entry.made')
  @IdempotentHandler<Order>((entry) => entry.orderId)
  @Ordered('ledger')
  @Retry({ delays: [150], attempts: 10 })
  async onEntry(@Payload() { orderId }: Order, @Ctx() context: RmqContext): Promise<void> {
    if (!(context.getMessage() as ConsumeMessage).fields.redelivered) untouched.add(orderId);
    await this.plans.act(orderId);
    await this.dataSource.query('INSERT INTO ledger (note) VALUES ($1)', [orderId]);
  }
}

const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  service = await startOrders(cleanup, { controllers: [Ledger] });
  // Each test has processes of its own.
  await service.app.close();
  await service.db.query(
    'CREATE TABLE ledger (line bigint GENERATED ALWAYS AS IDENTITY, note text NOT NULL)',
  );
});

beforeEach(() => service.db.query('TRUNCATE ledger'));

const publish = (orderId: string): Promise<void> =>
  service.broker.publish('events', 'entry.made', { orderId });

/** In the order of their transactions. */
async function ledger(): Promise<string[]> {
  const rows = await service.db.query<{ note: string }>('SELECT note FROM ledger ORDER BY line');
  return rows.map(({ note }) => note);
}

async function becomes(notes: string[]): Promise<void> {
  await eventually(async () => expect(await ledger()).toEqual(notes));
}

async function replica(): Promise<TestApp> {
  return cleanup.use(
    await createTestApp({
      databaseUrl: service.db.url,
      rabbitmqUrl: service.broker.url,
      controllers: [Ledger],
      config: { crashLimit: CRASH_LIMIT },
      // One plan for all, and one count of runs.
      providers: [{ provide: Plans, useValue: service.plans }],
    }),
  );
}

/** To a consumer that goes away without a word. */
async function deliverInVain(): Promise<void> {
  await service.broker.withChannel(
    (channel) =>
      new Promise((resolve, reject) => {
        channel.consume(QUEUE, resolve).catch(reject);
      }),
  );
}

function failsTimes(orderId: string, times: number): void {
  service.plans.plan(orderId, (run) => {
    if (run <= times) throw new Error('not yet');
  });
}

it('keeps the place of a message in work until it is done, and only then lets another go on', async () => {
  const slow = gate();
  service.plans.plan('A0', () => slow.opened);
  const first = await replica();
  await replica().then(async (second) => {
    await publish('A0');
    await publish('A1');
    await eventually(() => expect(service.plans.runs('A0')).toBe(1));
    const stopping = first.close();
    await holds(() => expect(service.plans.runs('A1')).toBe(0), 300);
    slow.open();
    await stopping;
    await becomes(['A0', 'A1']);
    // Not by the process that stops, which would leave it.
    expect(untouched).toContain('A1');
    await second.close();
  });
});

it('does not take the attempts of one message for those of the next', async () => {
  failsTimes('B0', 9);
  failsTimes('B1', 1);
  const first = await replica();
  await publish('B0');
  await becomes(['B0']);
  await first.close();
  await publish('B1');
  await deliverInVain();
  const second = await replica();
  await becomes(['B0', 'B1']);
  await second.close();
});

it('does not count a stop as a crash, however often it is stopped', async () => {
  failsTimes('C0', CRASH_LIMIT + 1);
  await publish('C0');
  for (let stops = 1; stops <= CRASH_LIMIT + 1; stops++) {
    const one = await replica();
    await eventually(() => expect(service.plans.runs('C0')).toBe(stops), { intervalMs: 1 });
    await one.close();
  }
  const last = await replica();
  await becomes(['C0']);
  await last.close();
});

it('gives a message up that is delivered in vain again and again, and goes on with the next', async () => {
  await publish('D0');
  for (let time = 0; time < CRASH_LIMIT; time++) await deliverInVain();
  await publish('D1');
  const one = await replica();
  expect((await deadLetter(service.broker)).headers).toMatchObject({
    'x-dead-reason': 'process-crashed',
    'x-original-queue': QUEUE,
  });
  await becomes(['D1']);
  expect(service.plans.runs('D0')).toBe(0);
  await one.close();
});
