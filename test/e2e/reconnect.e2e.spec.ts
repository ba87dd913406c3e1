import { eventually, startService, useCleanup, type Interceptor } from '../support/index.js';
import { complete, createServers, postedSales, type Servers } from './sales.js';

/** Class 20, method 10: the client opens a channel. */
const CHANNEL_OPEN = Buffer.from([0, 20, 0, 10]);

const cleanup = useCleanup();
let servers: Servers;

beforeAll(async () => {
  servers = await createServers(cleanup);
});

function cutAtChannelOpen(times: number): Interceptor {
  let left = times;
  return (chunk, direction) =>
    direction === 'toServer' && chunk.includes(CHANNEL_OPEN) && left-- > 0 ? 'cut' : 'forward';
}

it('starts, and comes back, through connections that break while a channel is opened', async () => {
  const { db, broker, rabbit } = servers;
  const stop = rabbit.intercept(cutAtChannelOpen(2));
  const service = cleanup.use(await startService({ databaseUrl: db.url, rabbitmqUrl: rabbit.url }));
  stop();
  expect(rabbit.cuts).toBe(2);
  rabbit.intercept(cutAtChannelOpen(3));
  rabbit.cut();
  await complete(broker, { saleId: 'S-1' });
  await eventually(async () => expect(await postedSales(db)).toEqual(['S-1']), {
    timeoutMs: 20_000,
  });
  await service.ready();
  expect(rabbit.cuts).toBe(5);
  expect(await broker.depth('commissions')).toEqual({ ready: 0, consumers: 1 });
  expect(service.output()).not.toContain('UnhandledRejection');
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});
