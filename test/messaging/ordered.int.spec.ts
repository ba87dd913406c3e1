import { Controller } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { DataSource } from 'typeorm';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { Ordered, PermanentError, Retry } from '../../src/messaging/index.js';
import {
  createTcpProxy,
  createTestApp,
  eventually,
  holds,
  useCleanup,
  type TestApp,
} from '../support/index.js';
import { deadLetter, Plans, startOrders, type Order, type OrderService } from './orders.js';

const QUEUE = 'commissions.ledger';

@Controller()
class Ledger {
  constructor(
    private readonly dataSource: DataSource,
    private readonly plans: Plans,
  ) {}

  @EventPattern<string>('entry.made')
  @IdempotentHandler<Order>((entry) => entry.orderId)
  @Ordered('ledger')
  @Retry({ delays: [60, 80], attempts: 4 })
  async onEntry(@Payload() { orderId }: Order): Promise<void> {
    await this.plans.act(orderId);
    await this.dataSource.query('INSERT INTO ledger (note) VALUES ($1)', [orderId]);
  }
}

const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  service = await startOrders(cleanup, { controllers: [Ledger] });
  await service.db.query(
    'CREATE TABLE ledger (line bigint GENERATED ALWAYS AS IDENTITY, note text NOT NULL)',
  );
});

beforeEach(() => service.db.query('TRUNCATE ledger'));

const publish = (orderId: string): Promise<void> =>
  service.broker.publish('events', 'entry.made', { orderId });

async function publishAll(prefix: string, count: number): Promise<string[]> {
  const all = Array.from({ length: count }, (_, index) => `${prefix}${index}`);
  for (const orderId of all) await publish(orderId);
  return all;
}

/** In the order of their transactions. */
async function ledger(): Promise<string[]> {
  const rows = await service.db.query<{ note: string }>('SELECT note FROM ledger ORDER BY line');
  return rows.map(({ note }) => note);
}

/** A second process of the service, with connections of its own. */
async function replica(): Promise<{ app: TestApp; cut: () => void }> {
  const rabbit = cleanup.use(await createTcpProxy(service.broker.url));
  const app = cleanup.use(
    await createTestApp({
      databaseUrl: service.db.url,
      rabbitmqUrl: rabbit.url,
      controllers: [Ledger],
      // One plan for all, and one count of runs.
      providers: [{ provide: Plans, useValue: service.plans }],
    }),
  );
  return { app, cut: () => rabbit.cut() };
}

async function quiet(): Promise<void> {
  await eventually(async () => {
    expect((await service.broker.depth(QUEUE)).ready).toBe(0);
    expect(service.settlements.unsettled).toBe(0);
  });
}

it('applies messages in the order in which they came, failures and replicas included', async () => {
  const other = await replica();
  for (const [orderId, failures] of [
    ['A3', 1],
    ['A4', 3],
    ['A9', 2],
  ] as const) {
    service.plans.plan(orderId, (run) => {
      if (run <= failures) throw new Error('not yet');
    });
  }
  const all = await publishAll('A', 20);
  await eventually(async () => expect(await ledger()).toEqual(all));
  expect(service.plans.runs('A4')).toBe(4);
  // Of several consumers the broker counts the one that it serves.
  expect(await service.broker.depth(QUEUE)).toEqual({ ready: 0, consumers: 1 });
  await other.app.close();
  await quiet();
});

it('takes one message at a time', async () => {
  let inWork = 0;
  let most = 0;
  const all = Array.from({ length: 10 }, (_, index) => `O${index}`);
  for (const orderId of all) {
    service.plans.plan(orderId, async () => {
      most = Math.max(most, ++inWork);
      await service.db.query('SELECT pg_sleep(0.01)');
      inWork--;
    });
  }
  await publishAll('O', 10);
  await eventually(async () => expect(await ledger()).toEqual(all));
  expect(most).toBe(1);
});

it('goes on after the attempts, or at once where none will help, and says when they were', async () => {
  service.plans.plan('B0', () => Promise.reject(new Error('never')));
  service.plans.plan('B2', () => Promise.reject(new PermanentError('no')));
  await publishAll('B', 4);
  await eventually(async () => expect(await ledger()).toEqual(['B1', 'B3']));
  expect(service.plans.runs('B0')).toBe(4);
  expect(service.plans.runs('B2')).toBe(1);
  const letters = await service.broker.drainQueue('commissions.dead');
  expect(letters.map(({ headers }) => headers)).toMatchObject([
    { 'x-dead-reason': 'attempts-exhausted', 'x-attempt': 4, 'x-original-queue': QUEUE },
    { 'x-dead-reason': 'permanent-error', 'x-attempt': 1, 'x-consumer': 'commissions/entry.made' },
  ]);
  const [first, last] = ['x-first-failed-at', 'x-last-failed-at'].map((name) =>
    Date.parse(String(letters[0]!.headers[name])),
  );
  expect(last! - first!).toBeGreaterThanOrEqual(60 + 80 + 80);
});

it('keeps order and attempts when its process loses the connection, or stops, while it waits', async () => {
  for (const [orderId, end] of [
    ['C', 'cut'],
    ['D', 'stop'],
  ] as const) {
    // Alone, so that it is this one that consumes; the other takes over.
    const first = await replica();
    await service.app.close();
    service.plans.plan(`${orderId}0`, (run) => {
      if (run === 2) {
        if (end === 'cut') first.cut();
        else void first.app.close();
      }
      throw new Error('never');
    });
    await publishAll(orderId, 2);
    const second = await replica();
    expect((await deadLetter(service.broker)).headers).toMatchObject({
      'x-dead-reason': 'attempts-exhausted',
      'x-attempt': 4,
    });
    await eventually(async () => expect(await ledger()).toContain(`${orderId}1`));
    // The run in which the connection was lost may be counted or not, but not more.
    expect([4, 5]).toContain(service.plans.runs(`${orderId}0`));
    await Promise.all([first.app.close(), second.app.close()]);
  }
});

it('begins again with the attempts when the note of them is not readable', async () => {
  const first = await replica();
  service.plans.plan('G0', (run) => {
    if (run === 1) throw new Error('not yet');
  });
  await publishAll('G', 1);
  await eventually(() => expect(service.plans.runs('G0')).toBe(1), { intervalMs: 1 });
  await first.app.close();
  await service.broker.sendToQueue(`${QUEUE}.notes`, 'no note');
  const second = await replica();
  await eventually(async () => expect(await ledger()).toEqual(['G0']));
  await second.app.close();
});

it('waits where it is during an outage of the database, and burns nothing', async () => {
  const own = await startOrders(cleanup, { controllers: [Ledger] });
  await own.db.query(
    'CREATE TABLE ledger (line bigint GENERATED ALWAYS AS IDENTITY, note text NOT NULL)',
  );
  own.postgres.refuse();
  own.postgres.cut();
  for (const orderId of ['E0', 'E1', 'E2']) {
    await own.broker.publish('events', 'entry.made', { orderId });
  }
  await eventually(() => expect(own.app.log()).toContain('Consuming pauses'));
  const held = { ready: 2, consumers: 1 };
  await holds(async () => expect(await own.broker.depth(QUEUE)).toEqual(held), 1_000);
  expect(own.settlements.delivered).toBe(1);
  await own.postgres.accept();
  const lines = (): Promise<{ note: string }[]> =>
    own.db.query('SELECT note FROM ledger ORDER BY line');
  await eventually(async () =>
    expect(await lines()).toEqual([{ note: 'E0' }, { note: 'E1' }, { note: 'E2' }]),
  );
  expect((await own.broker.depth('commissions.dead')).ready).toBe(0);
  expect(own.app.log()).not.toContain('Attempt');
});

it('stops at once while a message waits, and hands it to the next process with its place', async () => {
  const first = await replica();
  service.plans.plan('F0', (run) => {
    if (run === 1) throw new Error('not yet');
  });
  await publishAll('F', 3);
  await eventually(() => expect(service.plans.runs('F0')).toBe(1), { intervalMs: 1 });
  const stopped = Date.now();
  await first.app.close();
  expect(Date.now() - stopped).toBeLessThan(2_000);
  await replica();
  await eventually(async () => expect(await ledger()).toEqual(['F0', 'F1', 'F2']));
});
