import { eventually, startService, useCleanup } from '../support/index.js';
import { complete, createServers, sale, type Servers } from './sales.js';

const cleanup = useCleanup();
let servers: Servers;

beforeAll(async () => {
  servers = await createServers(cleanup);
  cleanup.use(await startService({ databaseUrl: servers.db.url, rabbitmqUrl: servers.broker.url }));
});

interface Commission {
  sale_id: string;
  salesperson_id: string;
  product_type: string;
  amount_cents: string;
  rate_bps: number;
}

async function commission(saleId: string): Promise<Commission> {
  return eventually(async () => {
    const rows = await servers.db.query<Commission & Record<string, unknown>>(
      `SELECT sale_id, salesperson_id, product_type, amount_cents, rate_bps
         FROM commission WHERE sale_id = $1`,
      [saleId],
    );
    expect(rows).toHaveLength(1);
    return rows[0]!;
  });
}

async function deadLetterHeaders(): Promise<Record<string, unknown>> {
  return eventually(async () => {
    const [letter] = await servers.broker.drainQueue('commissions.dead');
    expect(letter).toBeDefined();
    return letter!.headers;
  });
}

it('posts the commission of the contract’s example', async () => {
  await servers.broker.publish(
    'events',
    'sale.completed',
    '{"saleId":"S-1001","salespersonId":"P-7","productType":"standard","amountCents":129900,"currency":"EUR","completedAt":"2026-05-03T10:15:00Z"}',
  );
  expect(await commission('S-1001')).toEqual({
    sale_id: 'S-1001',
    salesperson_id: 'P-7',
    product_type: 'standard',
    amount_cents: '6495',
    rate_bps: 500,
  });
});

it.each<[string, number, string, number]>([
  ['standard', 100_000, '5000', 500],
  ['premium', 100_000, '8000', 800],
  ['service', 100_000, '3000', 300],
  ['standard', 0, '0', 500],
  ['standard', 9, '0', 500],
  ['standard', 10, '1', 500],
  ['standard', 29, '1', 500],
  ['standard', 30, '2', 500],
  ['premium', 6, '0', 800],
  ['premium', 7, '1', 800],
  ['service', 49, '1', 300],
  ['service', 50, '2', 300],
  ['premium', Number.MAX_SAFE_INTEGER, '720575940379279', 800],
])('posts for a %s sale of %d cents exactly %s, half a cent up', async (...row) => {
  const [productType, amountCents, expected, rate] = row;
  const saleId = `S-${productType}-${amountCents}`;
  await complete(servers.broker, { saleId, productType, amountCents, salespersonId: 'rounding' });
  expect(await commission(saleId)).toMatchObject({ amount_cents: expected, rate_bps: rate });
});

it('adds concurrent sales of one person up, each once', async () => {
  const sales = Array.from({ length: 60 }, (_, n) => ({
    saleId: `B-${n % 40}`,
    salespersonId: 'busy',
    amountCents: 1_000 + (n % 40),
  }));
  await Promise.all(sales.map((one) => complete(servers.broker, one)));
  await eventually(async () => {
    expect(
      await servers.db.query(
        `SELECT count(*)::int AS posted, count(DISTINCT sale_id)::int AS sales, sum(amount_cents)::text AS total
           FROM commission WHERE salesperson_id = 'busy'`,
      ),
    ).toEqual([{ posted: 40, sales: 40, total: '2040' }]);
    expect(
      await servers.db.query(
        `SELECT total_cents FROM salesperson_balance WHERE salesperson_id = 'busy'`,
      ),
    ).toEqual([{ total_cents: '2040' }]);
  });
});

it.each([
  ['an unknown product type', { productType: 'gift' }, 'permanent-error', 'known are standard'],
  ['a prototype’s name for a type', { productType: '__proto__' }, 'permanent-error', '__proto__'],
  ['half a cent', { amountCents: 0.5 }, 'invalid-payload', ''],
  ['a negative amount', { amountCents: -1 }, 'invalid-payload', ''],
  ['an amount past what is exact', { amountCents: 2 ** 53 }, 'invalid-payload', ''],
  ['no salesperson', { salespersonId: '' }, 'invalid-payload', ''],
  ['no sale', { saleId: '' }, 'invalid-key', 'no business key'],
])(
  'posts nothing for a sale with %s: a dead letter at once',
  async (what, some, reason, message) => {
    await servers.broker.publish('events', 'sale.completed', sale({ saleId: what, ...some }));
    const headers = await deadLetterHeaders();
    expect(headers).toMatchObject({ 'x-dead-reason': reason, 'x-attempt': 1 });
    expect(headers['x-error-message']).toContain(message);
    expect(await servers.db.query('SELECT 1 FROM commission WHERE sale_id = $1', [what])).toEqual(
      [],
    );
  },
);

it('posts no second commission for a known sale with another amount', async () => {
  await complete(servers.broker, { saleId: 'R-1', amountCents: 100 });
  await commission('R-1');
  await complete(servers.broker, { saleId: 'R-1', amountCents: 200 });
  expect(await deadLetterHeaders()).toMatchObject({ 'x-dead-reason': 'key-reuse' });
  expect(await commission('R-1')).toMatchObject({ amount_cents: '5' });
});
