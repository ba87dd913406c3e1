import { Client } from 'pg';
import {
  createTcpProxy,
  createTestDatabase,
  eventually,
  useCleanup,
  type TcpProxy,
  type TestDatabase,
} from './index.js';

const cleanup = useCleanup();
const perTest = useCleanup('each');
let db: TestDatabase;
let proxy: TcpProxy;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase({ migrated: false }));
});

beforeEach(async () => {
  proxy = perTest.use(await createTcpProxy(db.url));
  await db.query('DROP TABLE IF EXISTS thing; CREATE TABLE thing (id int PRIMARY KEY)');
});

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: proxy.url });
  client.on('error', () => undefined);
  await client.connect();
  perTest.defer(() => client.end());
  return client;
}

async function storedIds(): Promise<number[]> {
  return (await db.query<{ id: number }>('SELECT id FROM thing ORDER BY id')).map(({ id }) => id);
}

describe('the proxy', () => {
  it('cuts what is open, refuses what is new, and accepts again', async () => {
    const client = await connect();
    proxy.refuse();
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);

    proxy.cut();
    await expect(client.query('SELECT 1')).rejects.toThrow();
    await expect(connect()).rejects.toThrow('ECONNREFUSED');

    await proxy.accept();
    expect((await (await connect()).query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  });

  it('holds answers back until it resumes', async () => {
    const client = await connect();
    proxy.stall('toClient');
    let answered = false;
    const insert = client.query('INSERT INTO thing VALUES (1)').then(() => (answered = true));

    await eventually(async () => expect(await storedIds()).toEqual([1]));
    expect(answered).toBe(false);

    proxy.resume();
    await insert;
  });

  it('delays both directions', async () => {
    const client = await connect();
    proxy.delay(50);
    const startedAt = performance.now();

    await client.query('SELECT 1');

    // Twice 50 ms, less what timers may be early.
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(95);
  });

  it('hands over a chunk and then ends the connection', async () => {
    const client = await connect();
    proxy.intercept((_, direction) => (direction === 'toServer' ? 'cut-after' : 'forward'));

    await expect(client.query('INSERT INTO thing VALUES (1)')).rejects.toThrow(
      /ECONNRESET|terminated/,
    );

    await eventually(async () => expect(await storedIds()).toEqual([1]));
  });
});
