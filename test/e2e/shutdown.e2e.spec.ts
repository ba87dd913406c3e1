import {
  eventually,
  freePort,
  startService,
  useCleanup,
  type ServiceProcess,
} from '../support/index.js';
import { complete, createServers, postedSales, type Servers } from './sales.js';

const stopped = { code: 0, signal: null };
const cleanup = useCleanup('each');
let servers: Servers;
let service: ServiceProcess;

async function start(env: Record<string, string> = {}, waitReady = true): Promise<ServiceProcess> {
  const { postgres, rabbit } = servers;
  return cleanup.use(
    await startService({ databaseUrl: postgres.url, rabbitmqUrl: rabbit.url, env, waitReady }),
  );
}

beforeEach(async () => {
  servers = await createServers(cleanup);
});

/** Holds every handler at its first write, until the returned function is called. */
async function holdHandlers(): Promise<() => Promise<unknown>> {
  // Not by a lock: handlers give those up after five seconds.
  await servers.db.query(`
    CREATE TABLE gate ();
    CREATE FUNCTION wait_for_gate() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        WHILE NOT EXISTS (SELECT FROM gate) LOOP PERFORM pg_sleep(0.02); END LOOP;
        RETURN NEW;
      END $$;
    CREATE TRIGGER hold BEFORE INSERT ON commission
      FOR EACH ROW EXECUTE FUNCTION wait_for_gate()`);
  return () => servers.db.query('INSERT INTO gate DEFAULT VALUES');
}

async function stopping(): Promise<void> {
  await eventually(() => expect(service.output()).toContain('finishing the messages'));
}

async function waitingHandlers(count: number): Promise<void> {
  await eventually(async () => {
    const sessions = await servers.db.activity();
    const waiting = sessions.filter(({ waitsFor }) => waitsFor === 'Timeout: PgSleep');
    expect(waiting).toHaveLength(count);
  });
}

it('finishes on SIGTERM what has started, takes nothing new, and exits with 0', async () => {
  service = await start({ CONSUMER_CONCURRENCY: '2' });
  const letGo = await holdHandlers();
  for (let n = 0; n < 6; n++) await complete(servers.broker, { saleId: `S-${n}` });
  await waitingHandlers(2);
  service.signal('SIGTERM');
  await stopping();
  // Probes are still answered: the process lives, and takes no more.
  expect((await fetch(`${service.url}/health/live`)).status).toBe(200);
  expect((await fetch(`${service.url}/health/ready`)).status).toBe(503);
  await letGo();
  expect(await service.exited).toEqual(stopped);
  expect(await postedSales(servers.db)).toEqual(['S-0', 'S-1']);
  expect(await servers.broker.depth('commissions')).toEqual({ ready: 4, consumers: 0 });
});

it('hands back on SIGTERM what does not end within the grace, and exits with 0 soon after', async () => {
  service = await start({ SHUTDOWN_GRACE_SECONDS: '1' });
  const letGo = await holdHandlers();
  for (let n = 0; n < 3; n++) await complete(servers.broker, { saleId: `S-${n}` });
  await waitingHandlers(3);
  const from = performance.now();
  expect(await service.stop()).toEqual(stopped);
  expect(performance.now() - from).toBeLessThan(2_800);
  await letGo();
  expect(await servers.broker.depth('commissions')).toEqual({ ready: 3, consumers: 0 });
  expect(await postedSales(servers.db)).toEqual([]);
  service = await start();
  await eventually(async () =>
    expect(await postedSales(servers.db)).toEqual(['S-0', 'S-1', 'S-2']),
  );
});

it('does not wait after a second signal', async () => {
  service = await start();
  const letGo = await holdHandlers();
  await complete(servers.broker, { saleId: 'S-1' });
  await waitingHandlers(1);
  service.signal('SIGTERM');
  await stopping();
  service.signal('SIGINT');
  expect(await service.exited).toEqual({ code: 1, signal: null });
  await letGo();
  expect(await servers.broker.depth('commissions')).toMatchObject({ ready: 1 });
});

it('stops with 0 while the broker is away, and while it reconnects', async () => {
  service = await start();
  servers.rabbit.refuse();
  servers.rabbit.cut();
  await eventually(async () =>
    expect((await fetch(`${service.url}/health/ready`)).status).toBe(503),
  );
  expect(await service.stop(5_000)).toEqual(stopped);
});

it('stops with 0 when the broker was never there', async () => {
  service = cleanup.use(
    await startService({
      databaseUrl: servers.postgres.url,
      rabbitmqUrl: `amqp://guest:guest@127.0.0.1:${await freePort()}/`,
      waitReady: false,
    }),
  );
  await eventually(async () =>
    expect((await fetch(`${service.url}/health/live`)).status).toBe(200),
  );
  expect(await service.stop(5_000)).toEqual(stopped);
});

it('stops with 0 when the broker is silent: connected, and not answering', async () => {
  service = await start({ SHUTDOWN_GRACE_SECONDS: '1' });
  servers.rabbit.stall();
  const from = performance.now();
  expect(await service.stop(10_000)).toEqual(stopped);
  expect(performance.now() - from).toBeLessThan(8_000);
});

it('stops with 0 during an outage of the database, and its messages wait for the next', async () => {
  service = await start();
  servers.postgres.refuse();
  servers.postgres.cut();
  await complete(servers.broker, { saleId: 'S-1' });
  await eventually(async () => {
    const response = await fetch(`${service.url}/health/ready`);
    expect(await response.text()).toContain('paused during an outage');
  });
  expect(await service.stop(5_000)).toEqual(stopped);
  expect(await servers.broker.depth('commissions')).toEqual({ ready: 1, consumers: 0 });
  await servers.postgres.accept();
  await start();
  await eventually(async () => expect(await postedSales(servers.db)).toEqual(['S-1']));
});
