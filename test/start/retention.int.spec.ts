import { Controller, type Type } from '@nestjs/common';
import { EventPattern } from '@nestjs/microservices';
import type { AppConfig } from '../../src/config/index.js';
import { IdempotentHandler, NaturallyIdempotent } from '../../src/idempotency/index.js';
import { Retry } from '../../src/messaging/index.js';
import {
  createTestApp,
  createTestBroker,
  createTestDatabase,
  useCleanup,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';
import { runToEnd } from './process.js';

const DAY = 86_400_000;
const cleanup = useCleanup();
let db: TestDatabase;
let broker: TestBroker;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker());
});

/** The lines of the refusal; empty when it starts. */
async function faults(controllers: Type[], config: Partial<AppConfig> = {}): Promise<string[]> {
  const options = { databaseUrl: db.url, rabbitmqUrl: broker.url, controllers, config };
  try {
    const app = await createTestApp(options);
    await app.close();
    return [];
  } catch (error) {
    return (error as Error).message.split('\n').slice(1);
  }
}

@Controller()
class TooShort {
  @EventPattern<string>('month.closed')
  @IdempotentHandler('id', { retention: '30d' })
  month(): void {}

  @EventPattern<string>('year.closed')
  @IdempotentHandler('id', { reprocessing: '366d' })
  year(): void {}
}

@Controller()
class LongEnough {
  @EventPattern<string>('default')
  @IdempotentHandler('id')
  byDefault(): void {}

  @EventPattern<string>('month.seldom')
  @IdempotentHandler('id', { retention: '30d', reprocessing: '20d' })
  month(): void {}

  @EventPattern<string>('year.long')
  @IdempotentHandler('id', { reprocessing: '366d', retention: '400d' })
  year(): void {}
}

@Controller()
class SlowRetries {
  @EventPattern<string>('slow')
  @IdempotentHandler('id', { retention: '80d', timeout: '1s' })
  @Retry({ delays: [DAY], attempts: 14 })
  slow(): void {}
}

/** Retried by its neighbour for longer than its own schedule says. */
@Controller()
class BesideSlow {
  @EventPattern<string>('*')
  @IdempotentHandler('id', { retention: '80d' })
  any(): void {}
}

@Controller()
class BesideUntimed {
  @EventPattern<string>('natural')
  @IdempotentHandler('id', { retention: '68d', timeout: '1s' })
  timed(): void {}

  @EventPattern<string>('natural')
  @NaturallyIdempotent('it overwrites')
  untimed(): void {}
}

it('does not start with a retention that is shorter than the three terms, and names each', async () => {
  const found = await faults([TooShort, LongEnough]);
  expect(found).toEqual([
    expect.stringMatching(
      /month\.closed keeps its keys for 30d, .* after 67d 2h: redelivery 1h \d+m \+ consumer's delay 7d \(CONSUMER_DELAY\) \+ reprocessing 60d .*retention: '68d'/,
    ),
    expect.stringMatching(
      /year\.closed keeps its keys for 90d, .* after 373d 2h: .* \+ reprocessing 366d .*retention: '374d'/,
    ),
  ]);
});

it('starts when every handler keeps its keys long enough', async () => {
  expect(await faults([LongEnough])).toEqual([]);
});

it('measures the same handlers by what is declared', async () => {
  expect(await faults([LongEnough], { consumerDelayMs: 30 * DAY })).toEqual([
    expect.stringContaining('default keeps its keys for 90d, and a repeat can come after 90d 2h'),
    expect.stringContaining('month.seldom keeps its keys for 30d'),
  ]);
  expect(await faults([TooShort], { consumerDelayMs: DAY, reprocessingMs: 28 * DAY })).toEqual([
    expect.stringContaining('year.closed'),
  ]);
});

it('counts the retries of the handler, and of one that gets the same messages', async () => {
  expect(await faults([SlowRetries])).toEqual([
    expect.stringMatching(/slow keeps its keys for 80d, .* redelivery 13d 1h/),
  ]);
  expect(await faults([SlowRetries, BesideSlow])).toEqual([
    expect.stringContaining('slow keeps its keys for 80d'),
    expect.stringContaining('* keeps its keys for 80d'),
  ]);
});

it('counts half an hour for a run of a handler that has no timeout', async () => {
  // Four attempts with five deliveries each are ten hours of it.
  expect(await faults([BesideUntimed])).toEqual([]);
  expect(await faults([BesideUntimed], { consumerDelayMs: 7.7 * DAY })).toEqual([
    expect.stringContaining('redelivery 10h'),
  ]);
});

it('says so together with the other faults, as a process that ends', async () => {
  const { code, output } = await runToEnd({
    DATABASE_URL: db.url,
    RABBITMQ_URL: broker.url,
    REPROCESSING_HORIZON: '100d',
    CONSUMER_CONCURRENCY: '16',
    DATABASE_POOL_SIZE: '3',
  });
  expect(code).toBe(1);
  expect(output).toContain('The service does not start:');
  expect(output).toMatch(
    /sale\.completed keeps its keys for 90d, .*CONSUMER_DELAY\) \+ reprocessing 100d/,
  );
  expect(output).toContain('DATABASE_POOL_SIZE is 3');
  expect(await broker.depth('commissions')).toEqual({ ready: 0, consumers: 0 });
});

it('refuses durations that are none by the names of their variables', async () => {
  const { code, output } = await runToEnd({
    DATABASE_URL: db.url,
    RABBITMQ_URL: broker.url,
    CONSUMER_DELAY: '-7d',
    REPROCESSING_HORIZON: '0d',
  });
  expect(code).toBe(1);
  expect(output).toContain('CONSUMER_DELAY must be a duration like');
  expect(output).toContain('REPROCESSING_HORIZON must be a duration like');
});
