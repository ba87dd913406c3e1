import { Evidence } from '../../src/idempotency/index.js';
import { PermanentError } from '../../src/messaging/index.js';
import {
  effects,
  place,
  settled,
  startOrders,
  type Order,
  type OrderService,
} from '../messaging/orders.js';
import { eventually, useCleanup } from '../support/index.js';

const CONSUMER = 'commissions/order.placed';
const DAY = 86_400;
const cleanup = useCleanup('each');
let service: OrderService;

beforeEach(async () => {
  service = await startOrders(cleanup);
});

async function placeAll(...orders: Order[]): Promise<void> {
  for (const order of orders) await place(service.broker, order);
  await settled(service);
}

/** What is written down, without the oldest duplicate's fractions of a day. */
async function written(): Promise<unknown[]> {
  return service.db.query(
    `SELECT day = (now() AT TIME ZONE 'UTC')::date AS today, consumer, processed::int, duplicates::int,
            key_reuses::int, dead_letters::int, floor(oldest_duplicate_seconds / ${DAY})::int AS oldest_days
     FROM consumer_day ORDER BY consumer`,
  );
}

const row = (counts: object): object => ({
  today: true,
  consumer: CONSUMER,
  processed: 0,
  duplicates: 0,
  key_reuses: 0,
  dead_letters: 0,
  oldest_days: null,
  ...counts,
});

it('writes down by itself what became of the messages, with the age of the keys that came again', async () => {
  service.plans.plan('never', () => Promise.reject(new PermanentError('no')));
  await placeAll({ orderId: 'A' }, { orderId: 'B' }, { orderId: 'never' });
  await service.db.query(
    `UPDATE processed_message SET processed_at = processed_at - interval '40 days' WHERE key = 'A'`,
  );
  await placeAll({ orderId: 'A' }, { orderId: 'B' }, { orderId: 'B' }, { orderId: 'B', n: 2 });
  const counts = { processed: 2, duplicates: 3, key_reuses: 1, dead_letters: 2, oldest_days: 40 };
  await eventually(async () => expect(await written()).toEqual([row(counts)]));

  const metrics = await (await fetch(`${await service.app.app.getUrl()}/metrics`)).text();
  const bucket = (le: number): string =>
    `inbox_duplicate_age_seconds_bucket{le="${le}",consumer="${CONSUMER}"}`;
  expect(metrics).toContain(`${bucket(60)} 2`);
  expect(metrics).toContain(`${bucket(30 * DAY)} 2`);
  expect(metrics).toContain(`${bucket(60 * DAY)} 3`);
});

it('adds to the day, and writes the rest when the service stops', async () => {
  await placeAll({ orderId: 'A' });
  await service.app.get(Evidence).flush();
  expect(await written()).toEqual([row({ processed: 1 })]);
  await placeAll({ orderId: 'A' }, { orderId: 'B' });
  await service.app.close();
  expect(await written()).toEqual([row({ processed: 2, duplicates: 1, oldest_days: 0 })]);
});

it('keeps what it cannot write while the database is away, and writes it once', async () => {
  const evidence = service.app.get(Evidence);
  await placeAll({ orderId: 'A' });
  service.postgres.refuse();
  service.postgres.cut();
  await evidence.flush();
  await evidence.flush();
  await service.postgres.accept();
  await placeAll({ orderId: 'B' });
  await eventually(async () => {
    await evidence.flush();
    expect(await written()).toEqual([row({ processed: 2 })]);
  });
  expect(await effects(service.db)).toEqual(['A', 'B']);
});
