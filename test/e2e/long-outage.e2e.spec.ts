import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, startService, useCleanup, watchSettlements } from '../support/index.js';
import { complete, createServers, postedSales, type Servers } from './sales.js';

/** Longer: OUTAGE_SECONDS=600 npm test -- test/e2e/long-outage */
const SECONDS = Number(process.env.OUTAGE_SECONDS ?? 4);
const MESSAGES = 1_000;
const PROCESSES = 2;
const MEBIBYTE = 1024 * 1024;

const cleanup = useCleanup();
let servers: Servers;

beforeAll(async () => {
  servers = await createServers(cleanup);
});

async function residentBytes(url: string): Promise<number> {
  const metrics = await (await fetch(`${url}/metrics`)).text();
  return Number(/^process_resident_memory_bytes (\S+)/m.exec(metrics)?.[1]);
}

it(
  `burns nothing in ${SECONDS} seconds without PostgreSQL, and goes on by itself`,
  async () => {
    const { broker, db, postgres, rabbit } = servers;
    const settlements = watchSettlements(rabbit);
    const services = await Promise.all(
      Array.from({ length: PROCESSES }, async () =>
        cleanup.use(
          await startService({
            databaseUrl: postgres.url,
            rabbitmqUrl: rabbit.url,
            env: { RETRY_JITTER: '0', LOG_LEVEL: 'warn' },
          }),
        ),
      ),
    );
    postgres.refuse();
    postgres.cut();
    const sales = Array.from({ length: MESSAGES }, (_, n) => `S-${String(n).padStart(4, '0')}`);
    await Promise.all(sales.map((saleId) => complete(broker, { saleId })));
    await eventually(async () => {
      expect(settlements.unsettled).toBe(0);
      expect((await broker.depth('commissions')).consumers).toBe(0);
    });
    const delivered = settlements.delivered;
    const before = await Promise.all(services.map(({ url }) => residentBytes(url)));

    await sleep(SECONDS * 1_000);
    for (const { url } of services) {
      const response = await fetch(`${url}/health/ready`);
      expect(response.status).toBe(503);
      expect(await response.text()).toContain('paused during an outage: ');
    }
    const after = await Promise.all(services.map(({ url }) => residentBytes(url)));
    after.forEach((bytes, index) => expect(bytes - before[index]!).toBeLessThan(32 * MEBIBYTE));
    // Probing the database, not trying the messages.
    expect(settlements.delivered).toBe(delivered);

    await postgres.accept();
    await eventually(async () => expect(await postedSales(db)).toEqual(sales), {
      timeoutMs: 60_000,
      intervalMs: 200,
    });
    expect((await broker.depth('commissions.dead')).ready).toBe(0);
    for (const service of services) {
      expect(service.output()).not.toMatch(/Attempt \d+ failed/);
      await service.ready();
    }
  },
  60_000 + SECONDS * 2_000,
);
