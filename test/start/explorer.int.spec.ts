import { Controller, type Type } from '@nestjs/common';
import { EventPattern, MessagePattern } from '@nestjs/microservices';
import type { AppConfig } from '../../src/config/index.js';
import { IdempotentHandler, NaturallyIdempotent } from '../../src/idempotency/index.js';
import {
  createTestApp,
  createTestBroker,
  createTestDatabase,
  eventually,
  useCleanup,
  type TestBroker,
  type TestDatabase,
} from '../support/index.js';

const cleanup = useCleanup();
let db: TestDatabase;
let broker: TestBroker;

beforeAll(async () => {
  db = cleanup.use(await createTestDatabase());
  broker = cleanup.use(await createTestBroker());
});

/** The faults that the start names, each on a line of its own. */
async function faults(controllers: Type[], config?: Partial<AppConfig>): Promise<string[]> {
  const options = { databaseUrl: db.url, rabbitmqUrl: broker.url, controllers, config };
  const error: unknown = await createTestApp(options).then(
    (app) => app.close().then(() => new Error('it started')),
    (refusal: unknown) => refusal,
  );
  const [title, ...lines] = (error as Error).message.split('\n');
  expect(title).toBe('The service does not start:');
  return lines.map((line) => line.replace(/^ {2}- /, ''));
}

@Controller()
class Unmarked {
  @EventPattern<string>('unmarked')
  handle(): void {}
}

@Controller()
class MarkedTwice {
  @EventPattern<string>('both')
  @IdempotentHandler('id')
  @NaturallyIdempotent('it is')
  handle(): void {}
}

@Controller()
class WithoutReason {
  @EventPattern<string>('blank')
  @NaturallyIdempotent('  ')
  handle(): void {}
}

@Controller()
class SeveralPatterns {
  @EventPattern<string[]>(['one', 'two'])
  @IdempotentHandler('id')
  handle(): void {}
}

@Controller()
class HandlesNothing {
  @IdempotentHandler('id')
  marked(): void {}

  @NaturallyIdempotent('it is')
  natural(): void {}

  neither(): void {}
}

@Controller()
class BadOptions {
  @EventPattern<string>('bad.path')
  @IdempotentHandler('sale..id')
  path(): void {}

  @EventPattern<string>('bad.paths')
  @IdempotentHandler([])
  paths(): void {}

  @EventPattern<string>('bad.retention')
  @IdempotentHandler('id', { retention: '90 days' as '90d' })
  retention(): void {}

  @EventPattern<string>('bad.timeout')
  @IdempotentHandler('id', { timeout: '0s' })
  timeout(): void {}

  @EventPattern<string>('bad.consumer')
  @IdempotentHandler('id', { consumer: ' ' })
  consumer(): void {}
}

@Controller()
class SameName {
  @EventPattern<string>('same.a')
  @IdempotentHandler('id', { consumer: 'ledger' })
  one(): void {}

  @EventPattern<string>('same.b')
  @IdempotentHandler('id', { consumer: 'ledger' })
  two(): void {}
}

@Controller()
class SamePattern {
  @EventPattern<string>('same.pattern')
  @IdempotentHandler('id')
  one(): void {}

  @EventPattern<string>('same.pattern')
  @IdempotentHandler('id')
  two(): void {}
}

@Controller()
class Sound {
  @EventPattern<string>('sound')
  @IdempotentHandler('id')
  event(): void {}

  @MessagePattern<string>('sound.request')
  @NaturallyIdempotent('it only reads')
  request(): void {}

  @EventPattern<string[]>(['sound.a', 'sound.b'])
  @IdempotentHandler(['a', 'b.c'], { consumer: 'sound', retention: '70d', timeout: '5s' })
  several(): void {}
}

const EVERY_FAULT: [Type, RegExp[]][] = [
  [
    Unmarked,
    [/^Unmarked\.handle \(unmarked\) does not say .* @IdempotentHandler.* or @NaturallyIdempotent/],
  ],
  [MarkedTwice, [/^MarkedTwice\.handle has both .*: keep one/]],
  [WithoutReason, [/^WithoutReason\.handle: @NaturallyIdempotent needs the reason/]],
  [SeveralPatterns, [/^SeveralPatterns\.handle has several patterns: name .*consumer/]],
  [
    HandlesNothing,
    [/^HandlesNothing\.marked .*add @EventPattern/, /^HandlesNothing\.natural .*add @EventPattern/],
  ],
  [
    BadOptions,
    [
      /^BadOptions\.path: its key needs a path/,
      /^BadOptions\.paths: its key needs a path/,
      /^BadOptions\.retention: '90 days' is not a duration: write it like/,
      /^BadOptions\.timeout: '0s' is not a duration/,
      /^BadOptions\.consumer: its consumer name/,
    ],
  ],
  [SameName, [/consumer name ledger.*Give each a name of its own/]],
  [SamePattern, [/consumer name commissions\/same\.pattern/]],
];

function expectFaults(found: string[], expected: RegExp[]): void {
  expect(found).toHaveLength(expected.length);
  for (const pattern of expected) {
    expect(found).toContainEqual(expect.stringMatching(pattern));
  }
}

it.each(
  EVERY_FAULT.map(([controller, expected]) => ({ name: controller.name, controller, expected })),
)('does not start with $name, and says what to do', async ({ controller, expected }) => {
  expectFaults(await faults([Sound, controller]), expected);
});

it('names all faults at once, and consumes nothing', async () => {
  await broker.withChannel(async (channel) => {
    await channel.assertQueue('commissions', {
      durable: true,
      arguments: { 'x-queue-type': 'quorum' },
    });
  });
  await broker.sendToQueue('commissions', { id: 1 }, { type: 'sound' });
  const controllers = [Sound, ...EVERY_FAULT.map(([controller]) => controller)];
  const found = await faults(controllers, { concurrency: 16, poolSize: 16 });
  expectFaults(found, [
    ...EVERY_FAULT.flatMap(([, expected]) => expected),
    /^DATABASE_POOL_SIZE is 16, and 17 messages in work at the same time need 18/,
  ]);
  await eventually(async () => expect(await broker.connections()).toBe(0));
  expect(await broker.depth('commissions')).toEqual({ ready: 1, consumers: 0 });
  await broker.deleteQueue('commissions');
});

it('starts when every handler says what a repeat does', async () => {
  const app = await createTestApp({
    databaseUrl: db.url,
    rabbitmqUrl: broker.url,
    controllers: [Sound],
    config: { concurrency: 16, poolSize: 18 },
  });
  expect(await broker.depth('commissions')).toEqual({ ready: 0, consumers: 1 });
  await app.close();
  expect(await broker.depth('commissions')).toEqual({ ready: 0, consumers: 0 });
});
