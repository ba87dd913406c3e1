import {
  createTcpProxy,
  createTestBroker,
  createTestDatabase,
  type Cleanup,
  type TcpProxy,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

export interface Sale {
  saleId: string;
  salespersonId: string;
  productType: string;
  amountCents: number;
  currency: string;
  completedAt: string;
}

/** The example event of the contract, unless told otherwise. */
export function sale(some: Partial<Sale> = {}): Sale {
  return {
    saleId: 'S-1001',
    salespersonId: 'P-7',
    productType: 'standard',
    amountCents: 129_900,
    currency: 'EUR',
    completedAt: '2026-05-03T10:15:00Z',
    ...some,
  };
}

export function complete(broker: TestBroker, some: Partial<Sale>): Promise<void> {
  return broker.publish('events', 'sale.completed', sale(some));
}

export async function postedSales(db: TestDatabase): Promise<string[]> {
  const rows = await db.query<{ sale_id: string }>('SELECT sale_id FROM commission ORDER BY 1');
  return rows.map((row) => row.sale_id);
}

/** Servers of the spec file's own, each behind a proxy. */
export interface Servers {
  db: TestDatabase;
  broker: TestBroker;
  postgres: TcpProxy;
  rabbit: TcpProxy;
}

export async function createServers(cleanup: Cleanup): Promise<Servers> {
  const db = cleanup.use(await createTestDatabase());
  const broker = cleanup.use(await createTestBroker());
  const postgres = cleanup.use(await createTcpProxy(db.url));
  const rabbit = cleanup.use(await createTcpProxy(broker.url));
  return { db, broker, postgres, rabbit };
}
