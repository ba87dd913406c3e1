import {
  createTestBroker,
  createTestDatabase,
  eventually,
  startService,
  useCleanup,
} from '../support/index.js';

const cleanup = useCleanup();

it('lives on after work that nobody awaited was refused', async () => {
  const db = cleanup.use(await createTestDatabase());
  const broker = cleanup.use(await createTestBroker());
  const hook = new URL('unawaited-work.mjs', import.meta.url).href;
  const service = cleanup.use(
    await startService({
      databaseUrl: db.url,
      rabbitmqUrl: broker.url,
      env: { NODE_OPTIONS: `--import=${hook}` },
    }),
  );
  const publish = (saleId: string): Promise<void> =>
    broker.publish('events', 'sale.completed', {
      saleId,
      salespersonId: 'P',
      productType: 'standard',
      amountCents: 10_000,
      currency: 'EUR',
      completedAt: '2026-05-03T10:15:00Z',
    });
  const sales = async (): Promise<unknown> =>
    db.query('SELECT sale_id FROM commission ORDER BY sale_id');

  await publish('S-1');
  await eventually(() => expect(service.output()).toContain('a promise was not awaited'));
  await publish('S-2');
  await eventually(async () =>
    expect(await sales()).toEqual([{ sale_id: 'S-1' }, { sale_id: 'S-2' }]),
  );
  // By the handler's signal alone: a process that died of it would have an exit.
  expect((await service.stop()).code).toBe(0);
  expect(await sales()).toEqual([{ sale_id: 'S-1' }, { sale_id: 'S-2' }]);
});
