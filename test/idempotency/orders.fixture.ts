import { Controller, Inject, Injectable } from '@nestjs/common';
import { Ctx, EventPattern, Payload, type RmqContext } from '@nestjs/microservices';
import { InjectEntityManager, InjectRepository } from '@nestjs/typeorm';
import { Column, DataSource, Entity, EntityManager, PrimaryColumn, type Repository } from 'typeorm';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import {
  createTcpProxy,
  createTestApp,
  createTestBroker,
  createTestDatabase,
  eventually,
  watchSettlements,
  type Cleanup,
  type Settlements,
  type TakenMessage,
  type TcpProxy,
  type TestApp,
  type TestAppOptions,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

export interface Order {
  id: string;
  [field: string]: unknown;
}

/** What every test's handlers write; a second insert of an id is a unique violation. */
@Entity('effect')
export class Effect {
  @PrimaryColumn('text') id!: string;
  @Column('text') note!: string;
}

export const CREATE_EFFECT = 'CREATE TABLE effect (id text PRIMARY KEY, note text NOT NULL)';

type Work = (order: Order, tools: Orders, context: RmqContext, run: number) => unknown;

/** Handler bodies that each test gives: `orders.on('A', async (order, { effects }) => …)`. */
@Injectable()
export class Orders {
  private readonly works = new Map<string, Work>();
  private readonly counts = new Map<string, number>();

  constructor(
    @InjectRepository(Effect) readonly effects: Repository<Effect>,
    @Inject(DataSource) readonly dataSource: DataSource,
    @InjectEntityManager() readonly manager: EntityManager,
  ) {}

  /** What the handler does with the order of this id. */
  on(id: string, work: Work): void {
    this.works.set(id, work);
  }

  /** How often the handler ran for it. */
  runs(id: string): number {
    return this.counts.get(id) ?? 0;
  }

  /** What the test gave, or the insert of one effect with the order's id. */
  async work(order: Order, context: RmqContext): Promise<unknown> {
    const run = this.runs(order.id) + 1;
    this.counts.set(order.id, run);
    const work = this.works.get(order.id);
    return work === undefined
      ? this.effects.insert({ id: order.id, note: 'done' })
      : work(order, this, context, run);
  }
}

@Controller()
class OrdersConsumer {
  constructor(private readonly orders: Orders) {}

  @EventPattern<string>('order.placed')
  @IdempotentHandler<Order>((order) => order.id)
  onOrder(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }
}

/** One service with its own servers, watched from outside. */
export interface Fixture {
  db: TestDatabase;
  broker: TestBroker;
  app: TestApp;
  orders: Orders;
  databaseProxy: TcpProxy;
  rabbitProxy: TcpProxy;
  settlements: Settlements;
  publish(order: Order, pattern?: string): Promise<void>;
  /** The ids in `effect`, sorted. */
  effects(): Promise<string[]>;
  /** The keys in `processed_message`, sorted. */
  keys(): Promise<string[]>;
  /** Waits for the next dead letter and takes it. */
  deadLetter(): Promise<TakenMessage & { reason: unknown; error: string }>;
  /** Nothing is in a queue, and nothing is unsettled. */
  quiet(): Promise<void>;
}

type FixtureOptions = Partial<Omit<TestAppOptions, 'databaseUrl' | 'rabbitmqUrl'>> & {
  /** SQL that creates what the spec needs besides `effect`. */
  tables?: string;
  /** The database of another service, which this one is a second process of. */
  sharing?: TestDatabase;
};

/** Both servers are behind proxies, so that every spec can cut and count. */
export async function startFixture(
  cleanup: Cleanup,
  {
    tables = '',
    sharing,
    controllers = [],
    providers = [],
    entities = [],
    ...options
  }: FixtureOptions = {},
): Promise<Fixture> {
  const db = sharing ?? cleanup.use(await createTestDatabase());
  const broker = cleanup.use(await createTestBroker());
  const databaseProxy = cleanup.use(await createTcpProxy(db.url));
  const rabbitProxy = cleanup.use(await createTcpProxy(broker.url));
  const settlements = watchSettlements(rabbitProxy);
  if (sharing === undefined) await db.query(`${CREATE_EFFECT}; ${tables}`);
  const app = cleanup.use(
    await createTestApp({
      databaseUrl: databaseProxy.url,
      rabbitmqUrl: rabbitProxy.url,
      controllers: [OrdersConsumer, ...controllers],
      providers: [Orders, ...providers],
      entities: [Effect, ...entities],
      ...options,
    }),
  );
  const column = async (sql: string): Promise<string[]> =>
    (await db.query<{ value: string }>(sql)).map(({ value }) => value);
  return {
    db,
    broker,
    app,
    orders: app.get(Orders),
    databaseProxy,
    rabbitProxy,
    settlements,
    publish: (order, pattern = 'order.placed') => broker.publish('events', pattern, order),
    effects: () => column('SELECT id AS value FROM effect ORDER BY id COLLATE "C"'),
    keys: () => column('SELECT key AS value FROM processed_message ORDER BY key'),
    deadLetter: () => takeDeadLetter(broker),
    quiet: () => eventually(() => expectQuiet(broker, settlements, options.config?.retryDelaysMs)),
  };
}

async function takeDeadLetter(
  broker: TestBroker,
): Promise<TakenMessage & { reason: unknown; error: string }> {
  const taken = await eventually(async () => {
    const messages = await broker.drainQueue('commissions.dead');
    expect(messages).toHaveLength(1);
    return messages[0]!;
  });
  return {
    ...taken,
    reason: taken.headers['x-dead-reason'],
    error: `${String(taken.headers['x-error-name'])}: ${String(taken.headers['x-error-message'])}`,
  };
}

async function expectQuiet(
  broker: TestBroker,
  settlements: Settlements,
  delays: readonly number[] = [50, 100, 150],
): Promise<void> {
  const queues = ['commissions', ...delays.map((delay) => `commissions.retry.${delay}`)];
  // Several looks: a message that moves from one queue to another can be in neither for a moment.
  for (let look = 0; look < 3; look++) {
    const depths = await Promise.all(queues.map((queue) => broker.depth(queue)));
    const ready = depths.reduce((total, depth) => total + depth.ready, 0);
    expect({ ready, unsettled: settlements.unsettled }).toEqual({ ready: 0, unsettled: 0 });
  }
}

/** A promise that a test resolves, for handlers that wait until the test has looked. */
export class Gate {
  private resolve!: () => void;
  readonly opened = new Promise<void>((resolve) => {
    this.resolve = resolve;
  });

  open(): void {
    this.resolve();
  }
}
