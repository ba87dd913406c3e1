import {
  createTcpProxy,
  createTestBroker,
  createTestDatabase,
  eventually,
  startService,
  useCleanup,
  type ServiceProcess,
  type TcpProxy,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

const CRASH_LIMIT = 5;
const POISON = 'POISON';
const cleanup = useCleanup();
let db: TestDatabase;
let broker: TestBroker;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker());
  // Declares the queues, so that all messages are there when the consumers come.
  const first = await startService({ databaseUrl: db.url, rabbitmqUrl: broker.url });
  await first.stop();
});

const publish = (saleId: string): Promise<void> =>
  broker.publish('events', 'sale.completed', {
    saleId,
    salespersonId: 'P-7',
    productType: 'standard',
    amountCents: 10_000,
    currency: 'EUR',
    completedAt: '2026-05-03T10:15:00Z',
  });

const innocents = (round: number, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `round-${round}-${index}`);

async function posted(): Promise<string[]> {
  const rows = await db.query<{ sale_id: string }>('SELECT sale_id FROM commission ORDER BY 1');
  return rows.map((row) => row.sale_id);
}

/** A process that ends each time it is about to claim the poisonous message, and starts again. */
class Replica implements AsyncDisposable {
  crashes = 0;
  private service: ServiceProcess | undefined;
  private ended = false;
  private running: Promise<void> | undefined;

  constructor(private readonly postgres: TcpProxy) {
    postgres.intercept((chunk, direction) => {
      if (direction !== 'toServer' || !chunk.includes(POISON) || this.service === undefined) {
        return 'forward';
      }
      this.service.signal('SIGKILL');
      this.service = undefined;
      this.crashes++;
      return 'cut';
    });
  }

  run(): void {
    this.running = this.restart();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.ended = true;
    await this.service?.kill();
    await this.running;
  }

  private async restart(): Promise<void> {
    while (!this.ended) {
      const service = await startService({
        databaseUrl: this.postgres.url,
        rabbitmqUrl: broker.url,
        env: { CRASH_LIMIT: String(CRASH_LIMIT), RETRY_JITTER: '0' },
        waitReady: false,
      });
      this.service = service;
      if (this.ended) {
        await service.kill();
      }
      await service.exited;
    }
  }
}

it('gives up a message that ends the process each time, after the limit, and spares all others', async () => {
  const sales = innocents(0, 20);
  await publish(sales[0]!);
  await publish(POISON);
  for (const saleId of sales.slice(1)) await publish(saleId);
  const replicas = [0, 1].map(async () => {
    const postgres = cleanup.use(await createTcpProxy(db.url));
    // No neighbour of the poison comes to its end before the process does.
    postgres.delay(30);
    return cleanup.use(new Replica(postgres));
  });
  const [one, two] = await Promise.all(replicas);
  one!.run();
  two!.run();

  await eventually(
    async () => {
      const crashes = one!.crashes + two!.crashes;
      if (crashes * 10 > sales.length) {
        for (const saleId of innocents(crashes, 10)) {
          sales.push(saleId);
          await publish(saleId);
        }
      }
      expect((await broker.depth('commissions.dead')).ready).toBe(1);
    },
    { timeoutMs: 60_000 },
  );
  expect(one!.crashes + two!.crashes).toBe(CRASH_LIMIT);

  await eventually(async () => expect(await posted()).toEqual(sales.toSorted()), {
    timeoutMs: 20_000,
  });
  const [letter] = await broker.drainQueue('commissions.dead');
  expect(JSON.parse(letter!.body.toString())).toMatchObject({ saleId: POISON });
  expect(letter!.headers).toMatchObject({
    'x-dead-reason': 'process-crashed',
    'x-error-name': 'CrashedConsumerError',
    'x-original-exchange': 'events',
    'x-original-routing-key': 'sale.completed',
    'x-original-queue': 'commissions',
  });
  expect((await broker.depth('commissions')).ready).toBe(0);
  expect((await broker.depth('commissions.suspects')).ready).toBe(0);
}, 90_000);
