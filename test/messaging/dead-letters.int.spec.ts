import {
  Catch,
  Controller,
  Injectable,
  UseFilters,
  UseGuards,
  type CanActivate,
  type ExceptionFilter,
} from '@nestjs/common';
import { EventPattern, Payload } from '@nestjs/microservices';
import { EMPTY, type Observable } from 'rxjs';
import { z } from 'zod';
import { IdempotentHandler, NaturallyIdempotent } from '../../src/idempotency/index.js';
import { PermanentError } from '../../src/messaging/index.js';
import { useCleanup, type TakenMessage } from '../support/index.js';
import {
  deadLetter,
  effects,
  Orders,
  place,
  settled,
  startOrders,
  type OrderService,
} from './orders.js';

class RefusingGuard implements CanActivate {
  canActivate(): boolean {
    return false;
  }
}

/** As an application may have one: it answers something else than the error. */
@Catch()
class SwallowingFilter implements ExceptionFilter {
  catch(): Observable<never> {
    return EMPTY;
  }
}

const priceSchema = z.object({ cents: z.int() });

@Injectable()
@Controller()
class Refusals {
  ran = 0;

  @EventPattern<string>('guarded')
  @UseGuards(RefusingGuard)
  @NaturallyIdempotent('never runs')
  guarded(): void {
    this.ran++;
  }

  @EventPattern<string>('guarded.quietly')
  @UseGuards(RefusingGuard)
  @UseFilters(SwallowingFilter)
  @NaturallyIdempotent('never runs')
  guardedQuietly(): void {
    this.ran++;
  }

  @EventPattern<string>('price.set')
  @NaturallyIdempotent('never runs')
  priceSet(@Payload({ schema: priceSchema }) _price: z.infer<typeof priceSchema>): void {
    this.ran++;
  }

  @EventPattern<string>('picky')
  @IdempotentHandler<{ id: string }>('id', { fingerprint: () => 1n / 0n })
  picky(): void {
    this.ran++;
  }
}

const cleanup = useCleanup();
let service: OrderService;

beforeAll(async () => {
  service = await startOrders(cleanup, { controllers: [Orders, Refusals] });
});

/** Published with all that a producer can say, so that a test sees what of it survives. */
async function publishAndFail(routingKey: string, body: string): Promise<TakenMessage> {
  await service.broker.publish('events', routingKey, body, {
    messageId: `m-${routingKey}`,
    correlationId: 'c-1',
    contentType: 'application/json',
    type: 'note',
    appId: 'shop',
    headers: { tenant: 'T', nested: { list: [1, 'two', null, true] } },
  });
  const letter = await deadLetter(service.broker);
  await settled(service);
  return letter;
}

it.each([
  ['not JSON', 'order.placed', 'not json', 'not-json', 'UnprocessableMessageError'],
  ['no handler', 'nobody.listens', '{"orderId":"N"}', 'no-handler', 'UnprocessableMessageError'],
  [
    'an invalid key',
    'order.placed',
    '{"orderId": 9007199254740993}',
    'invalid-key',
    'InvalidKeyError',
  ],
  ['no fingerprint', 'picky', '{"id":"F"}', 'invalid-payload', 'InvalidFingerprintError'],
  ['an invalid payload', 'price.set', '{"cents":"many"}', 'invalid-payload', 'BadRequestException'],
  ['a guard that refuses', 'guarded', '{ "id": 1 }', 'guard-refused', 'Error'],
  [
    'a guard whose refusal a filter swallows',
    'guarded.quietly',
    '{}',
    'guard-refused',
    'UnprocessableMessageError',
  ],
])(
  'makes a message with %s a dead letter the first time, byte for byte, with the reason',
  async (_, routingKey, body, reason, errorName) => {
    await service.broker.withChannel((channel) =>
      channel.bindQueue('commissions', 'events', 'nobody.listens'),
    );
    const letter = await publishAndFail(routingKey, body);
    expect(letter.body.toString()).toBe(body);
    expect(letter.headers).toEqual({
      tenant: 'T',
      nested: { list: [1, 'two', null, true] },
      'x-attempt': 1,
      'x-dead-reason': reason,
      'x-error-name': errorName,
      'x-error-message': expect.stringMatching(/./) as string,
      'x-first-failed-at': expect.stringMatching(/^\d{4}-.*Z$/) as string,
      'x-last-failed-at': expect.stringMatching(/^\d{4}-.*Z$/) as string,
      'x-consumer': expect.stringMatching(/^commissions/) as string,
      'x-original-queue': 'commissions',
      'x-original-exchange': 'events',
      'x-original-routing-key': routingKey,
      'x-publish-id': expect.any(String) as string,
    });
    expect(letter.properties).toMatchObject({
      messageId: `m-${routingKey}`,
      correlationId: 'c-1',
      contentType: 'application/json',
      type: 'note',
      appId: 'shop',
      deliveryMode: 2,
    });
    expect(service.app.get(Refusals).ran).toBe(0);
    expect(await service.db.query('SELECT 1 FROM processed_message')).toEqual([]);
  },
);

it('makes a message whose handler throws PermanentError a dead letter after one run', async () => {
  service.plans.plan('P', () => {
    throw new PermanentError('no such product');
  });
  const letter = await publishAndFail('order.placed', '{"orderId":"P"}');
  expect(letter.headers).toMatchObject({
    'x-dead-reason': 'permanent-error',
    'x-error-name': 'PermanentError',
    'x-error-message': 'no such product',
    'x-attempt': 1,
  });
  expect(service.plans.runs('P')).toBe(1);
  expect(await effects(service.db)).toEqual([]);
});

it('makes a second payload under a known key a dead letter, and keeps the first one’s effect', async () => {
  await place(service.broker, { orderId: 'R', cents: 100 });
  await settled(service);
  const letter = await publishAndFail('order.placed', '{"orderId":"R","cents":101}');
  expect(letter.headers).toMatchObject({
    'x-dead-reason': 'key-reuse',
    'x-error-name': 'KeyReuseError',
  });
  expect(await effects(service.db)).toEqual(['R']);
});

it('processes a dead letter that a redrive brings back, and not a second time', async () => {
  service.plans.plan('D', (run) => {
    if (run === 1) throw new PermanentError('not yet');
  });
  const letter = await publishAndFail('order.placed', '{"orderId":"D"}');
  const redrive = () =>
    service.broker.sendToQueue('commissions', letter.body, { headers: letter.headers });
  await redrive();
  await settled(service);
  await redrive();
  await settled(service);
  expect(service.plans.runs('D')).toBe(2);
  expect(await effects(service.db)).toEqual(['D', 'R']);
  expect((await service.broker.depth('commissions.dead')).ready).toBe(0);
});

it('dead-letters what has no readable error at all: circular, a bigint, nothing', async () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  const nameless = Object.assign(new Error('x'), { name: 7, message: { not: 'a text' } });
  const thrown = [circular, 10n, undefined, nameless, Symbol('s')];
  for (const [index, error] of thrown.entries()) {
    service.plans.plan(`T${index}`, () => Promise.reject(error));
    await place(service.broker, { orderId: `T${index}` });
    const letter = await deadLetter(service.broker);
    expect(letter.headers).toMatchObject({ 'x-dead-reason': 'attempts-exhausted', 'x-attempt': 4 });
  }
  await settled(service);
});
