import { Controller, Injectable, type Type } from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { DataSource } from 'typeorm';
import type { AppConfig } from '../../src/config/index.js';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import {
  createTcpProxy,
  createTestApp,
  createTestBroker,
  createTestDatabase,
  eventually,
  watchSettlements,
  type BrokerAddress,
  type Cleanup,
  type Settlements,
  type TakenMessage,
  type TcpProxy,
  type TestApp,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

export interface Order {
  orderId: string;
  [more: string]: unknown;
}

/** What the handler of an order does after its effect; told how often it has run for this order. */
export type Act = (run: number) => unknown;

/** What the test wants of the handlers, and how often they have run. */
@Injectable()
export class Plans {
  private readonly acts = new Map<string, Act>();
  private readonly counts = new Map<string, number>();

  plan(orderId: string, act: Act): void {
    this.acts.set(orderId, act);
  }

  runs(orderId: string): number {
    return this.counts.get(orderId) ?? 0;
  }

  async act(orderId: string): Promise<void> {
    const run = this.runs(orderId) + 1;
    this.counts.set(orderId, run);
    await this.acts.get(orderId)?.(run);
  }
}

/** Writes down each order that it handles, as often as it handles it, and then does what is planned. */
@Controller()
export class Orders {
  constructor(
    private readonly dataSource: DataSource,
    private readonly plans: Plans,
  ) {}

  @EventPattern<string>('order.placed')
  @IdempotentHandler<Order>((order) => order.orderId)
  async onOrder(@Payload() { orderId }: Order): Promise<void> {
    await recordEffect(this.dataSource, orderId);
    await this.plans.act(orderId);
  }
}

export async function recordEffect(dataSource: DataSource, note: string): Promise<void> {
  await dataSource.query('INSERT INTO effect (note) VALUES ($1)', [note]);
}

export interface OrderOptions {
  controllers?: Type[];
  providers?: Type[];
  config?: Partial<AppConfig>;
  /** A broker of the spec's own; the shared one unless set. */
  on?: BrokerAddress;
}

/** The service on servers of its own, each behind a proxy, and what a test asks of them. */
export interface OrderService {
  db: TestDatabase;
  broker: TestBroker;
  postgres: TcpProxy;
  rabbit: TcpProxy;
  settlements: Settlements;
  app: TestApp;
  plans: Plans;
}

/** Starts the service with the `Orders` handler, or with others. */
export async function startOrders(
  cleanup: Cleanup,
  { controllers = [Orders], providers = [], config, on }: OrderOptions = {},
): Promise<OrderService> {
  const db = cleanup.use(await createTestDatabase());
  const broker = cleanup.use(await createTestBroker(on));
  await db.query('CREATE TABLE effect (note text NOT NULL)');
  const postgres = cleanup.use(await createTcpProxy(db.url));
  const rabbit = cleanup.use(await createTcpProxy(broker.url));
  const settlements = watchSettlements(rabbit);
  const app = cleanup.use(
    await createTestApp({
      databaseUrl: postgres.url,
      rabbitmqUrl: rabbit.url,
      controllers,
      providers: [Plans, ...providers],
      config,
    }),
  );
  return { db, broker, postgres, rabbit, settlements, app, plans: app.get(Plans) };
}

export function place(broker: TestBroker, order: Order): Promise<void> {
  return broker.publish('events', 'order.placed', order);
}

/** Every effect that was committed, once for each time. */
export async function effects(db: TestDatabase): Promise<string[]> {
  const rows = await db.query<{ note: string }>('SELECT note FROM effect ORDER BY note');
  return rows.map(({ note }) => note);
}

/** Waits until the service has settled all that it was given, and its queue is empty. */
export async function settled({ broker, settlements }: OrderService): Promise<void> {
  await eventually(async () => {
    expect(await broker.depth('commissions')).toEqual({ ready: 0, consumers: 1 });
    expect(settlements.unsettled).toBe(0);
  });
}

/** Waits for the one dead letter there is, and takes it. */
export async function deadLetter(broker: TestBroker): Promise<TakenMessage> {
  await eventually(async () => expect((await broker.depth('commissions.dead')).ready).toBe(1));
  const [letter] = await broker.drainQueue('commissions.dead');
  // The broker's own, written as the message is taken.
  delete letter!.headers['x-delivery-count'];
  return letter!;
}

/** A promise, and what settles it: holds a handler until the test lets it go on. */
export function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

/** What `GET /health/ready` answers. */
export async function readiness(app: TestApp): Promise<{ status: number; body: string }> {
  const response = await fetch(`${await app.app.getUrl()}/health/ready`);
  return { status: response.status, body: await response.text() };
}
