import { Client } from 'pg';
import {
  createTcpProxy,
  createTestDatabase,
  cutAtCommit,
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

async function insertInTransaction(client: Client, id: number, commit = 'COMMIT'): Promise<void> {
  await client.query('BEGIN');
  await client.query('INSERT INTO thing VALUES ($1)', [id]);
  await client.query(commit);
}

async function storedIds(): Promise<number[]> {
  return (await db.query<{ id: number }>('SELECT id FROM thing ORDER BY id')).map(({ id }) => id);
}

describe('cutAtCommit', () => {
  it('keeps the COMMIT from the server: nothing is stored', async () => {
    const client = await connect();
    proxy.intercept(cutAtCommit({ when: 'before-server' }));

    await expect(insertInTransaction(client, 1)).rejects.toThrow(/ECONNRESET|terminated/);

    expect(proxy.cuts).toBe(1);
    await eventually(async () => expect(await db.activity()).toEqual([]));
    expect(await storedIds()).toEqual([]);
  });

  it('loses the answer of a COMMIT that the server has done: the row is there', async () => {
    const client = await connect();
    proxy.intercept(cutAtCommit({ when: 'after-server' }));

    await expect(insertInTransaction(client, 1)).rejects.toThrow(/ECONNRESET|terminated/);

    expect(proxy.cuts).toBe(1);
    expect(await storedIds()).toEqual([1]);
  });

  it.each(['before-server', 'after-server'] as const)(
    'recognises a prepared COMMIT that arrives byte by byte (%s)',
    async (when) => {
      const client = await connect();
      const intercept = cutAtCommit({ when });
      proxy.intercept((chunk, ...where) => {
        const verdicts = [...chunk].map((byte) => intercept(Buffer.of(byte), ...where));
        return verdicts.find((verdict) => verdict !== 'forward') ?? 'forward';
      });
      await client.query('BEGIN');
      await client.query('INSERT INTO thing VALUES (1)');

      const commit = client.query({ name: 'commit', text: '/* the end */ commit' });

      await expect(commit).rejects.toThrow(/ECONNRESET|terminated/);
      expect(await storedIds()).toEqual(when === 'after-server' ? [1] : []);
    },
  );

  it('lets through what it is told to skip, cuts as often as told, and then no more', async () => {
    proxy.intercept(cutAtCommit({ when: 'before-server', skip: 1, times: 2 }));

    const outcomes: string[] = [];
    for (const id of [1, 2, 3, 4]) {
      const insert = insertInTransaction(await connect(), id);
      outcomes.push(
        await insert.then(
          () => 'stored',
          () => 'cut',
        ),
      );
    }

    expect(outcomes).toEqual(['stored', 'cut', 'cut', 'stored']);
    expect(await storedIds()).toEqual([1, 4]);
  });

  it('counts only transactions with the statement it is told to wait for', async () => {
    const client = await connect();
    proxy.intercept(cutAtCommit({ when: 'before-server', onlyAfter: /INSERT INTO thing/ }));
    await client.query('BEGIN');
    await client.query('COMMIT');

    await expect(insertInTransaction(client, 1)).rejects.toThrow(/ECONNRESET|terminated/);
  });

  it('leaves ROLLBACK and statements outside transactions alone', async () => {
    const client = await connect();
    proxy.intercept(cutAtCommit({ when: 'after-server' }));

    await insertInTransaction(client, 1, 'ROLLBACK');
    await client.query('INSERT INTO thing VALUES (2)');

    expect(await storedIds()).toEqual([2]);
  });
});

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
