import {
  createTestBroker,
  createTestDatabase,
  createTcpProxy,
  eventually,
  freePort,
  startService,
  useCleanup,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';
import { runToEnd } from './process.js';

const SECRET = 'hunter2';
const cleanup = useCleanup();
let db: TestDatabase;
let broker: TestBroker;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker());
});

function withPassword(url: string, password: string, port?: number): string {
  const changed = new URL(url);
  changed.password = password;
  if (port !== undefined) changed.port = String(port);
  return changed.href;
}

it('tells of an unreachable database without its password, however the URL is written', async () => {
  const urls = [
    withPassword(db.url, SECRET, await freePort()),
    'postgres://user:p%zzhunter2@127.0.0.1:1/db',
    'postgres://user:hunter2@127.0.0.1:1/%zz',
    'postgres://user:hunter2@[::1]:1/db?sslmode=hunter2',
    'postgres://user:hunter2@no.such.host.invalid/db',
    'postgres://user:hun ter2hunter2@127.0.0.1:1/db',
    'postgres://user:x@127.0.0.1/db/hunter2@y',
  ];
  const ends = await Promise.all(
    urls.map((url, index) =>
      runToEnd({
        DATABASE_URL: url,
        RABBITMQ_URL: withPassword(broker.url, SECRET),
        LOG_FORMAT: index % 2 === 0 ? 'json' : 'text',
        LOG_LEVEL: 'verbose',
        PORT: '0',
      }),
    ),
  );
  expect(ends.map(({ code }) => code)).toEqual(urls.map(() => 1));
  const output = ends.map((end) => end.output).join('\n');
  expect(output).toContain('ECONNREFUSED');
  expect(output).not.toContain(SECRET);
});

it('has no password in a log, a health answer or a metric while its servers are away', async () => {
  const postgres = cleanup.use(await createTcpProxy(db.url));
  const rabbit = cleanup.use(await createTcpProxy(broker.url));
  const service = cleanup.use(
    await startService({
      databaseUrl: postgres.url,
      rabbitmqUrl: rabbit.url,
      env: { LOG_LEVEL: 'verbose' },
    }),
  );
  for (const proxy of [postgres, rabbit]) {
    proxy.refuse();
    proxy.cut();
  }
  const answers: string[] = [];
  await eventually(async () => {
    const response = await fetch(`${service.url}/health/ready`);
    answers.push(await response.text());
    expect(response.status).toBe(503);
    expect(answers.at(-1)).toContain('not connected to the queue');
    expect(answers.at(-1)).toContain('ECONNREFUSED');
  });
  answers.push(await (await fetch(`${service.url}/metrics`)).text());
  await service.stop();
  const said = [...answers, service.output()].join('\n');
  expect(said).toContain('ECONNREFUSED');
  for (const url of [db.url, broker.url]) expect(said).not.toContain(new URL(url).password);
});

it('says that RabbitMQ refuses its password, and not which', async () => {
  const service = cleanup.use(
    await startService({
      databaseUrl: db.url,
      rabbitmqUrl: withPassword(broker.url, SECRET),
      env: { LOG_LEVEL: 'verbose' },
      waitReady: false,
    }),
  );
  await eventually(() => expect(service.output()).toContain('ACCESS_REFUSED'));
  // The publisher connects before the checks are through, and HTTP answers after them.
  const ready = await eventually(() => fetch(`${service.url}/health/ready`));
  expect(ready.status).toBe(503);
  expect((await ready.text()) + service.output()).not.toContain(SECRET);
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});
