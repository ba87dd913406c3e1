import 'reflect-metadata';
import { planQueues, type Plan, type RegisteredHandler } from './queue-plan.js';
import type { HandlerOptions } from './handler-options.js';

const handler = (pattern: string, options: HandlerOptions = {}): RegisteredHandler => ({
  pattern,
  handler: () => Promise.resolve(),
  isEvent: true,
  options,
});

const plan = (handlers: RegisteredHandler[], more: { retryJitter?: number } = {}): Plan =>
  planQueues(handlers, {
    queue: 'commissions',
    concurrency: 16,
    retryDelaysMs: [1_000, 10_000],
    retryJitter: 0,
    crashLimit: 5,
    ...more,
  });

describe('the longest redelivery', () => {
  it('is each attempt with all its crashes, and the longest wait between them', () => {
    expect(plan([handler('sale')]).redelivery('sale')).toEqual({
      waitsMs: 20_000,
      runs: 15,
      patterns: ['sale'],
    });
  });

  it('has the longest wait of the jitter', () => {
    const { redelivery } = plan([handler('sale')], { retryJitter: 0.2 });
    expect(redelivery('sale').waitsMs).toBe(24_000);
  });

  it('is of the schedule of the handler itself', () => {
    const { redelivery } = plan([handler('sale', { retry: { delays: [60_000], attempts: 4 } })]);
    expect(redelivery('sale')).toMatchObject({ waitsMs: 180_000, runs: 20 });
  });

  it('lasts as long as another handler of the same message has attempts', () => {
    const { redelivery } = plan([
      handler('sale.completed'),
      handler('sale.*', { retry: { attempts: 10 } }),
      handler('order', { retry: { attempts: 50 } }),
    ]);
    expect(redelivery('sale.completed')).toEqual({
      waitsMs: 90_000,
      runs: 50,
      patterns: ['sale.completed', 'sale.*'],
    });
  });

  it('can have any wait that the queue has, because a handler can ask for it', () => {
    const { redelivery } = plan([
      handler('sale'),
      handler('order', { retry: { delays: [3_600_000] } }),
    ]);
    expect(redelivery('sale').waitsMs).toBe(7_200_000);
  });

  it('leaves out the handlers of other queues, whose copy is another one', () => {
    const reports = { name: 'reports', ordered: false, concurrency: undefined };
    const { redelivery } = plan([
      handler('sale'),
      handler('sale', { retry: { attempts: 7 }, queue: reports }),
      handler('sale.#', { retry: { attempts: 100 }, queue: { ...reports, name: 'other' } }),
    ]);
    expect(redelivery('sale')).toEqual({ waitsMs: 60_000, runs: 35, patterns: ['sale', 'sale'] });
  });

  it('has no end in time for a pattern that is not consumed, because there is no message', () => {
    expect(plan([]).redelivery('sale')).toEqual({ waitsMs: 0, runs: 0, patterns: [] });
  });
});
