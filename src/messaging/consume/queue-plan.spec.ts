import 'reflect-metadata';
import { PATTERN_EXTRAS_METADATA } from '@nestjs/microservices/constants.js';
import { EventPattern } from '@nestjs/microservices';
import { ConsumeFrom, handlerOptionsOf, Ordered, Retry } from './handler-options.js';
import { planQueues, scheduleOf, type RegisteredHandler } from './queue-plan.js';

const options = {
  queue: 'commissions',
  concurrency: 16,
  retryDelaysMs: [1_000, 5_000],
  retryJitter: 0,
  crashLimit: 5,
};

class Handlers {
  @EventPattern<string>('plain', { mine: true })
  plain(): void {}

  @EventPattern<string>('slow.above')
  @ConsumeFrom('slow', { concurrency: 2 })
  @Retry({ delays: [200], attempts: 4 })
  above(): void {}

  @ConsumeFrom('slow', { concurrency: 2 })
  @EventPattern<string>('slow.below')
  below(): void {}

  @Ordered('ledger')
  @EventPattern<string>('entry.made')
  entry(): void {}
}

/** As Nest registers the methods of a controller. */
function registered(type: { prototype: object } = Handlers): RegisteredHandler[] {
  return Object.entries(Object.getOwnPropertyDescriptors(type.prototype))
    .filter(([name]) => name !== 'constructor')
    .map(([name, { value }]) => {
      const extras = Reflect.getMetadata(PATTERN_EXTRAS_METADATA, value as object) as object;
      return {
        pattern: name,
        handler: () => Promise.resolve(),
        isEvent: true,
        options: handlerOptionsOf(extras as Record<PropertyKey, unknown>),
      };
    });
}

const faultsOf = (type: { prototype: object }): string[] =>
  planQueues(registered(type), options).faults;

describe('planQueues', () => {
  it('puts handlers on the service’s queue, and on those they name, shared by name', () => {
    const { queues, faults, concurrency } = planQueues(registered(), options);
    expect(faults).toEqual([]);
    expect(
      queues.map(({ name, concurrency: atOnce, ordered, handlers, delays }) => ({
        name,
        atOnce,
        ordered,
        patterns: handlers.map(({ pattern }) => pattern),
        delaysMs: delays.delaysMs,
      })),
    ).toEqual([
      {
        name: 'commissions',
        atOnce: 16,
        ordered: false,
        patterns: ['plain'],
        delaysMs: [1_000, 5_000],
      },
      {
        name: 'commissions.slow',
        atOnce: 2,
        ordered: false,
        patterns: ['above', 'below'],
        delaysMs: [200, 1_000, 5_000],
      },
      {
        name: 'commissions.ledger',
        atOnce: 1,
        ordered: true,
        patterns: ['entry'],
        delaysMs: [1_000, 5_000],
      },
    ]);
    // With a suspect for each queue that is not ordered.
    expect(concurrency).toBe(17 + 3 + 1);
  });

  it('keeps what others write into the extras', () => {
    const method: unknown = Object.getOwnPropertyDescriptor(Handlers.prototype, 'plain')?.value;
    const extras = Reflect.getMetadata(PATTERN_EXTRAS_METADATA, method as object) as object;
    expect(extras).toEqual({ mine: true });
  });

  it('has the service’s queue also without a handler on it, and a delay for busy keys', () => {
    const [queue] = planQueues([], options).queues;
    expect(queue).toMatchObject({ name: 'commissions', handlers: [] });
    expect(queue?.delays.delaysMs).toEqual([1_000]);
  });

  it('names every fault', () => {
    class Faulty {
      @Retry({ delays: [0, 1.5, 86_400_001] })
      delays(): void {}

      @Retry({ attempts: 0 })
      attempts(): void {}

      @ConsumeFrom('dead')
      reserved(): void {}

      @ConsumeFrom('a.b', { concurrency: 0 })
      dotted(): void {}

      @ConsumeFrom('two', { concurrency: 1 })
      two(): void {}

      @Ordered('two')
      ways(): void {}
    }
    expect(faultsOf(Faulty)).toEqual([
      "The handler of delays: @Retry's delays are whole milliseconds from 1 to 86400000, a day; got [0, 1.5, 86400001].",
      "The handler of attempts: @Retry's attempts are a whole number from 1, no retry, to 100; got 0.",
      'The handler of reserved: the queue name "dead" must be 1 to 100 letters, digits, - or _, and not dead, retry, suspects or notes.',
      'The handler of dotted: the queue name "a.b" must be 1 to 100 letters, digits, - or _, and not dead, retry, suspects or notes.',
      'The handler of dotted: the queue a.b has the concurrency 0: give a whole number from 1 to 1000.',
      'The handler of ways: the queue two is described in two ways: its handlers must agree on @Ordered and on concurrency.',
    ]);
  });
});

describe('scheduleOf', () => {
  it.each([
    [undefined, [1_000, 5_000], 3],
    [{}, [1_000, 5_000], 3],
    [{ delays: [200] }, [200], 2],
    [{ delays: [200], attempts: 4 }, [200], 4],
    [{ delays: [200, 300, 400], attempts: 2 }, [200], 2],
    [{ attempts: 2 }, [1_000], 2],
    [{ attempts: 9 }, [1_000, 5_000], 9],
    [{ attempts: 1 }, [1_000], 1],
    [{ delays: [] }, [1_000], 1],
  ])('of %j: %j, %d runs', (retry, delaysMs, attempts) => {
    expect(scheduleOf(retry, options.retryDelaysMs)).toEqual({ delaysMs, attempts });
  });
});
