import { Client } from 'pg';
import {
  atPoint,
  createTcpProxy,
  createTestDatabase,
  cut,
  eventually,
  stall,
  useCleanup,
  type TcpProxy,
  type TestDatabase,
} from './index.js';

const cleanup = useCleanup();
const perTest = useCleanup('each');
const lost = /ECONNRESET|terminated/;
const onlyAfter = /INTO thing/;
let db: TestDatabase;
let proxy: TcpProxy;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase({ migrated: false }));
  await db.query('CREATE TABLE thing (id int); CREATE TABLE processed_message (key int)');
});

beforeEach(async () => {
  proxy = perTest.use(await createTcpProxy(db.url));
  await db.query('TRUNCATE thing, processed_message');
});

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: proxy.url });
  client.on('error', () => undefined);
  await client.connect();
  perTest.defer(() => client.end());
  return client;
}

async function insertInTransaction(client: Client, id: number, end = 'COMMIT'): Promise<void> {
  await client.query('BEGIN');
  await client.query('INSERT INTO thing VALUES ($1)', [id]);
  await client.query(end);
}

async function storedIds(): Promise<number[]> {
  return (await db.query<{ id: number }>('SELECT id FROM thing ORDER BY id')).map(({ id }) => id);
}

describe.each([
  ['before-commit', []],
  ['committed', [1]],
] as const)('the point %s', (point, stored) => {
  it(`loses the COMMIT, and leaves ${stored.length} rows`, async () => {
    const client = await connect();
    proxy.intercept(atPoint(point, cut, { onlyAfter }));

    await expect(insertInTransaction(client, 1)).rejects.toThrow(lost);

    expect(proxy.cuts).toBe(1);
    await eventually(async () => expect(await db.activity()).toEqual([]));
    expect(await storedIds()).toEqual(stored);
  });

  it('recognises a prepared COMMIT that arrives byte by byte', async () => {
    const client = await connect();
    const intercept = atPoint(point, cut, { onlyAfter });
    proxy.intercept(async (chunk, ...where) => {
      const verdicts = await Promise.all(
        [...chunk].map(async (byte) => intercept(Buffer.of(byte), ...where)),
      );
      return verdicts.find((verdict) => verdict !== 'forward') ?? 'forward';
    });
    await client.query('BEGIN');
    await client.query('INSERT INTO thing VALUES (1)');

    const commit = client.query({ name: 'commit', text: '/* the end */ commit' });

    await expect(commit).rejects.toThrow(lost);
    expect(await storedIds()).toEqual(stored);
  });

  it('counts only transactions with a claim, or with the statement that it is told', async () => {
    const client = await connect();
    proxy.intercept(atPoint(point, cut));
    await insertInTransaction(client, 7);
    await client.query('BEGIN');
    await client.query('INSERT INTO processed_message VALUES (1)');

    await expect(client.query('COMMIT')).rejects.toThrow(lost);

    expect(await storedIds()).toEqual([7]);
  });

  it('leaves ROLLBACK and statements outside transactions alone', async () => {
    const client = await connect();
    proxy.intercept(atPoint(point, cut, { onlyAfter }));

    await insertInTransaction(client, 1, 'ROLLBACK');
    await client.query('INSERT INTO thing VALUES (2)');
    await client.query('BEGIN');
    await client.query('COMMIT');

    expect(await storedIds()).toEqual([2]);
  });
});

it('lets through what it is told to skip, cuts as often as told, and then no more', async () => {
  proxy.intercept(atPoint('before-commit', cut, { onlyAfter, skip: 1, times: 2 }));

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

describe('the point claimed', () => {
  it('cuts when the INSERT of the key was answered, and not when it failed', async () => {
    const client = await connect();
    proxy.intercept(atPoint('claimed', cut));
    await expect(client.query("INSERT INTO processed_message VALUES ('x')")).rejects.toThrow(
      'invalid input syntax',
    );
    expect(proxy.cuts).toBe(0);

    await client.query('BEGIN');
    const claim = client.query('INSERT INTO processed_message VALUES (1)');

    // The answer arrives, and then the end of the connection.
    expect((await claim).rowCount).toBe(1);
    await expect(client.query('SELECT 1')).rejects.toThrow();
    expect(proxy.cuts).toBe(1);
    expect(await db.query('SELECT FROM processed_message')).toEqual([]);
  });
});

it('holds an answer up until the test lets it go', async () => {
  const client = await connect();
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  proxy.intercept(atPoint('committed', stall(opened), { onlyAfter }));
  let answered = false;
  const insert = insertInTransaction(client, 1).then(() => (answered = true));

  await eventually(async () => expect(await storedIds()).toEqual([1]));
  expect(answered).toBe(false);

  open();
  await insert;
});
