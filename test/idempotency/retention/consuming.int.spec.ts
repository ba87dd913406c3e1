import { Controller } from '@nestjs/common';
import { EventPattern } from '@nestjs/microservices';
import { IdempotentHandler } from '../../../src/idempotency/index.js';
import { ConsumerActivity } from '../../../src/idempotency/retention/consumer-activity.js';
import { ConsumeFrom, Ordered, ReliableRmqServer } from '../../../src/messaging/index.js';
import { eventually, useCleanup } from '../../support/index.js';
import { startFixture, type Fixture } from '../orders.fixture.js';

@Controller()
class Reports {
  @EventPattern<string>('report.wanted')
  @IdempotentHandler('id')
  @ConsumeFrom('reports')
  onReport(): void {}

  /** Goes on holding its place in the queue during an outage, and takes nothing. */
  @EventPattern<string>('entry.made')
  @IdempotentHandler('id')
  @Ordered('ledger')
  onEntry(): void {}
}

const cleanup = useCleanup();
let world: Fixture;

beforeEach(async () => {
  world = await startFixture(cleanup, {
    controllers: [Reports],
    config: { concurrency: 2, poolSize: 10 },
  });
});

const ORDERS = 'commissions/order.placed';
const ENTRIES = 'commissions/entry.made';
const REPORTS = 'commissions/report.wanted';

/** The consumers that a note finds at work. */
async function noted(): Promise<string[]> {
  await world.db.query('TRUNCATE consumer_activity');
  await world.app.get(ConsumerActivity).note();
  const rows = await world.db.query<{ consumer: string }>(
    'SELECT consumer FROM consumer_activity ORDER BY consumer',
  );
  return rows.map(({ consumer }) => consumer);
}

it('notes every consumer of a service that consumes', async () => {
  expect(await noted()).toEqual([ENTRIES, ORDERS, REPORTS]);
});

it('notes none while the broker is away, and all when it is back', async () => {
  world.rabbitProxy.refuse();
  world.rabbitProxy.cut();
  await eventually(async () => expect(await noted()).toEqual([]));
  await world.rabbitProxy.accept();
  await eventually(async () => expect(await noted()).toEqual([ENTRIES, ORDERS, REPORTS]));
});

it('takes a service for one that does not consume while it is paused during an outage of the database', async () => {
  world.databaseProxy.refuse();
  world.databaseProxy.cut();
  await world.publish({ id: 'A' });
  const server = world.app.get(ReliableRmqServer);
  await eventually(() => expect(server.isConsuming('order.placed')).toBe(false));
  expect(server.isConsuming('report.wanted')).toBe(false);
  expect(server.isConsuming('entry.made')).toBe(false);
  await world.databaseProxy.accept();
  await eventually(async () => expect(await world.effects()).toEqual(['A']));
  await eventually(async () => expect(await noted()).toEqual([ENTRIES, ORDERS, REPORTS]));
});

it('does not note a consumer whose queue alone cannot be consumed', async () => {
  // Another queue of this name stands in the way: the service tries again and again.
  await world.broker.withChannel(async (channel) => {
    await channel.deleteQueue('commissions.reports.suspects');
    await channel.assertQueue('commissions.reports.suspects', { durable: true });
    await channel.deleteQueue('commissions.reports');
  });
  await eventually(async () => expect(await noted()).toEqual([ENTRIES, ORDERS]));
});
