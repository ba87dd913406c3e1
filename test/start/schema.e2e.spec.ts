import {
  createTestBroker,
  createTestDatabase,
  startService,
  useCleanup,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

const cleanup = useCleanup();
let broker: TestBroker;

beforeAll(async () => {
  broker = cleanup.use(await createTestBroker());
});

async function refusal(db: TestDatabase): Promise<string> {
  const service = cleanup.use(
    await startService({ databaseUrl: db.url, rabbitmqUrl: broker.url, waitReady: false }),
  );
  expect(await service.exited).toEqual({ code: 1, signal: null });
  const output = service.output();
  expect(output).toContain('The service does not start:');
  expect(output).not.toContain('is consuming');
  return output;
}

it.each<[string, string, string]>([
  [
    'the table of its keys is missing',
    'DROP TABLE processed_message',
    'processed_message with its primary key (consumer, key) is missing',
  ],
  [
    'its primary key is missing',
    'ALTER TABLE processed_message DROP CONSTRAINT processed_message_pk',
    'restore it as the first migration creates it',
  ],
  [
    'its primary key is another one',
    `ALTER TABLE processed_message DROP CONSTRAINT processed_message_pk,
       ADD PRIMARY KEY (consumer, key, processed_at)`,
    'primary key (consumer, key) is missing',
  ],
  [
    'its primary key is checked only at commit',
    `ALTER TABLE processed_message DROP CONSTRAINT processed_message_pk,
       ADD CONSTRAINT pk PRIMARY KEY (consumer, key) DEFERRABLE`,
    'primary key (consumer, key) is missing',
  ],
  [
    'a migration is pending',
    'DELETE FROM migrations WHERE id = (SELECT max(id) FROM migrations)',
    'run `npm run migrate`',
  ],
])('exits, and says what to do, when %s', async (_, sql, advice) => {
  const db = cleanup.use(await createTestDatabase());
  await db.query(sql);
  expect(await refusal(db)).toContain(advice);
});

it('exits, and changes nothing, on a database that was never migrated', async () => {
  const db = cleanup.use(await createTestDatabase({ migrated: false }));
  const output = await refusal(db);
  expect(output).toMatch(/behind by ProcessedMessage\d+, Commissions\d+/);
  expect(await db.query('SELECT 1 FROM pg_tables WHERE schemaname = $$public$$')).toEqual([]);
  // Nothing was declared either. (The broker's list of connections can keep one that ended as it opened.)
  await expect(broker.depth('commissions')).rejects.toThrow('NOT_FOUND');
});
