import {
  Catch,
  Controller,
  Inject,
  Injectable,
  Scope,
  StandardSchemaValidationPipe,
  UseFilters,
  UseGuards,
  UseInterceptors,
  type CallHandler,
  type CanActivate,
  type ExceptionFilter,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { Ctx, EventPattern, Payload, type RmqContext } from '@nestjs/microservices';
import { InjectRepository } from '@nestjs/typeorm';
import { catchError, of, timeout, type Observable } from 'rxjs';
import type { Repository } from 'typeorm';
import { z } from 'zod';
import { IdempotentHandler } from '../../src/idempotency/index.js';
import { eventually, useCleanup } from '../support/index.js';
import { Effect, Orders, startFixture, type Fixture, type Order } from './orders.fixture.js';

const cleanup = useCleanup();
let world: Fixture;

@Catch()
class SwallowEverything implements ExceptionFilter {
  catch(): unknown {
    return of('never mind');
  }
}

@Injectable()
class Refuse implements CanActivate {
  canActivate(): boolean {
    return false;
  }
}

/** Swallows errors as a hasty author's interceptor does. */
@Injectable()
class SwallowOutside implements NestInterceptor {
  intercept(_: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(catchError(() => of('never mind')));
  }
}

@Injectable()
class WriteBeside implements NestInterceptor {
  constructor(@InjectRepository(Effect) private readonly effects: Repository<Effect>) {}

  async intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
    const { id } = context.switchToRpc().getData<Order>();
    await this.effects.insert({ id: `${id} beside`, note: '' });
    return next.handle().pipe(timeout(5_000));
  }
}

@Controller()
class Pipeline {
  constructor(private readonly orders: Orders) {}

  @EventPattern<string>('guarded')
  @UseGuards(Refuse)
  @IdempotentHandler<Order>((order) => order.id)
  guarded(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }

  @EventPattern<string>('filtered')
  @UseFilters(SwallowEverything)
  @IdempotentHandler<Order>((order) => order.id)
  filtered(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }

  @EventPattern<string>('intercepted.inside')
  @UseInterceptors(WriteBeside)
  @IdempotentHandler<Order>((order) => order.id)
  inside(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }

  @EventPattern<string>('piped')
  @IdempotentHandler<Order>((order) => order.id)
  piped(
    @Payload({ schema: z.object({ id: z.string(), amount: z.int() }) }) order: Order,
    @Ctx() context: RmqContext,
  ): Promise<unknown> {
    return this.orders.work(order, context);
  }
}

@Controller()
@UseInterceptors(SwallowOutside)
class Swallowed {
  constructor(private readonly orders: Orders) {}

  @EventPattern<string>('intercepted.outside')
  @IdempotentHandler<Order>((order) => order.id)
  outside(@Payload() order: Order, @Ctx() context: RmqContext): Promise<unknown> {
    return this.orders.work(order, context);
  }
}

/** A new instance for every message. */
@Controller({ path: undefined, scope: Scope.REQUEST })
class PerMessage {
  static instances = 0;

  constructor(
    @Inject(Orders) private readonly orders: Orders,
    @InjectRepository(Effect) private readonly effects: Repository<Effect>,
  ) {
    PerMessage.instances++;
  }

  @EventPattern<string>('scoped')
  @IdempotentHandler<Order>((order) => order.id)
  async scoped(@Payload() order: Order, @Ctx() context: RmqContext): Promise<void> {
    await this.effects.insert({ id: `${order.id} scoped`, note: '' });
    await this.orders.work(order, context);
  }
}

beforeAll(async () => {
  world = await startFixture(cleanup, {
    controllers: [Pipeline, PerMessage, Swallowed],
    providers: [StandardSchemaValidationPipe],
    config: { retryDelaysMs: [10] },
  });
});

const effectsOf = async (id: string): Promise<string[]> =>
  (await world.effects()).filter((one) => one.startsWith(id));

async function processed(id: string): Promise<void> {
  await eventually(async () => expect(await world.keys()).toContain(id));
}

it('dead-letters what a guard refused, the first time', async () => {
  await world.publish({ id: 'guarded' }, 'guarded');
  expect((await world.deadLetter()).reason).toBe('guard-refused');
  expect(world.orders.runs('guarded')).toBe(0);
  expect(await world.keys()).not.toContain('guarded');
});

it('rolls the claim back when a pipe refuses the payload, so that a corrected one is processed', async () => {
  await world.publish({ id: 'piped', amount: 'ten' }, 'piped');
  expect(await world.deadLetter()).toMatchObject({ reason: 'invalid-payload' });
  expect(await world.keys()).not.toContain('piped');
  expect(world.orders.runs('piped')).toBe(0);
  await world.publish({ id: 'piped', amount: 10 }, 'piped');
  await processed('piped');
});

it.each(['filtered', 'intercepted.outside'])(
  'retries what failed although its error was swallowed outside of the transaction: %s',
  async (pattern) => {
    world.orders.on(pattern, async (_, { effects }, __, run) => {
      await effects.insert({ id: `${pattern}-${run}`, note: '' });
      if (run === 1) throw new Error('swallowed by the application');
    });
    await world.publish({ id: pattern }, pattern);
    await processed(pattern);
    expect(await effectsOf(pattern)).toEqual([`${pattern}-2`]);
  },
);

it('dead-letters what fails every time although an exception filter swallows it', async () => {
  world.orders.on('always', () => {
    throw new Error('swallowed by the application');
  });
  await world.publish({ id: 'always' }, 'filtered');
  expect(await world.deadLetter()).toMatchObject({
    reason: 'attempts-exhausted',
    error: 'Error: swallowed by the application',
  });
});

it('runs the handler in the transaction also behind an interceptor of its own', async () => {
  world.orders.on('behind', async (_, { effects }, __, run) => {
    await effects.insert({ id: `behind-${run}`, note: '' });
    if (run === 1) throw new Error('fails after its effect');
  });
  await world.publish({ id: 'behind' }, 'intercepted.inside');
  await processed('behind');
  expect(await effectsOf('behind')).toEqual(['behind beside', 'behind-2']);
});

it('gives a request-scoped controller the transaction, and runs it once for each intent', async () => {
  world.orders.on('scoped', async (_, { effects }, __, run) => {
    await effects.insert({ id: `scoped-${run}`, note: '' });
    if (run === 1) throw new Error('fails after its effect');
  });
  await world.publish({ id: 'scoped' }, 'scoped');
  await processed('scoped');
  await world.quiet();
  const acked = world.settlements.acked;
  await world.publish({ id: 'scoped' }, 'scoped');
  await eventually(() => expect(world.settlements.acked).toBe(acked + 1));
  expect(await effectsOf('scoped')).toEqual(['scoped scoped', 'scoped-2']);
  expect(world.orders.runs('scoped')).toBe(2);
  expect(PerMessage.instances).toBeGreaterThanOrEqual(3);
});
