import type { MessageHandler } from '@nestjs/microservices';
import { DelayQueues } from '../settle/delay-queues.js';
import type { HandlerOptions, OwnQueue, RetryOptions } from './handler-options.js';
import { longestRedelivery, type Redelivery } from './redelivery.js';
import type { RetrySchedule } from '../settle/retry-policy.js';
import { routeOf } from '../dispatch/routes.js';

/** A handler as Nest hands it to the transport. */
export interface RegisteredHandler {
  pattern: unknown;
  handler: MessageHandler;
  isEvent: boolean;
  options: HandlerOptions;
}

/** A handler with its retry schedule. */
export interface PlannedHandler {
  pattern: string;
  handler: MessageHandler;
  isEvent: boolean;
  schedule: RetrySchedule;
}

/** One queue that the service consumes. */
export interface QueuePlan {
  name: string;
  concurrency: number;
  ordered: boolean;
  handlers: PlannedHandler[];
  /** Handlers of the service's other queues. What is for them alone is not bound here. */
  elsewhere: { queue: string; handler: PlannedHandler }[];
  delays: DelayQueues;
}

export interface PlanOptions {
  /** The service's queue, which all handlers without one of their own share. */
  queue: string;
  concurrency: number;
  retryDelaysMs: readonly number[];
  retryJitter: number;
  crashLimit: number;
}

export interface Plan {
  queues: QueuePlan[];
  /** Messages that are in work at the same time, in all queues of a process. */
  concurrency: number;
  /** What is wrong with the decorators' options, with what to do about it. */
  faults: string[];
  /** How long the messages of a pattern can go on being delivered. */
  redelivery: (pattern: string) => Redelivery;
}

/** A day; a longer wait is a job for a scheduler. The same as for RETRY_DELAYS. */
const LONGEST_DELAY_MS = 86_400_000;
const MOST_ATTEMPTS = 100;
const MOST_CONCURRENCY = 1_000;
/** A name beside `dead`, `retry`, `suspects` and `notes`, which are the service's own. */
const QUEUE_NAME = /^(?!(?:dead|retry|suspects|notes)$)[A-Za-z0-9_-]{1,100}$/;

/** Which queues the service consumes, and which handler is on which. */
export function planQueues(registered: readonly RegisteredHandler[], options: PlanOptions): Plan {
  const own = new Map<string, OwnQueue>();
  const faults = registered.flatMap(({ pattern, options: { retry, queue } }) =>
    [...retryFaults(retry), ...queueFaults(queue, own)].map(
      (fault) => `The handler of ${routeOf(pattern)}: ${fault}`,
    ),
  );
  const queueOf = (name?: string): RegisteredHandler[] =>
    registered.filter((handler) => handler.options.queue?.name === name);
  const shared = { name: options.queue, concurrency: options.concurrency, ordered: false };
  const queues = [
    planQueue(shared, queueOf(), options),
    ...[...own.values()].map(({ name, ordered, concurrency = options.concurrency }) =>
      planQueue({ name: `${options.queue}.${name}`, concurrency, ordered }, queueOf(name), options),
    ),
  ];
  for (const plan of queues) {
    plan.elsewhere = queues
      .filter((other) => other !== plan)
      .flatMap(({ name, handlers }) => handlers.map((handler) => ({ queue: name, handler })));
  }
  const concurrency = queues.reduce((sum, queue) => sum + inWork(queue), 0);
  return {
    queues,
    concurrency,
    faults: [...new Set(faults)],
    redelivery: (pattern) => longestRedelivery(pattern, queues, options.crashLimit),
  };
}

/** Beside a queue's messages one suspect, which is delivered alone. */
const inWork = ({ concurrency, ordered }: QueuePlan): number => concurrency + (ordered ? 0 : 1);

function planQueue(
  queue: Pick<QueuePlan, 'name' | 'concurrency' | 'ordered'>,
  registered: RegisteredHandler[],
  { retryDelaysMs, retryJitter }: PlanOptions,
): QueuePlan {
  const handlers = registered.map(({ pattern, handler, isEvent, options: { retry } }) => ({
    pattern: routeOf(pattern),
    handler,
    isEvent,
    schedule: scheduleOf(retry, retryDelaysMs),
  }));
  const wantedMs = new Set([
    ...handlers.flatMap(({ schedule }) => schedule.delaysMs),
    // Also without a handler that retries: a message whose key is busy waits for it.
    retryDelaysMs[0]!,
  ]);
  const delays = new DelayQueues(wantedMs, retryJitter);
  return { ...queue, handlers, elsewhere: [], delays };
}

export function scheduleOf(
  { delays, attempts }: RetryOptions = {},
  retryDelaysMs: readonly number[],
): RetrySchedule {
  const wanted = delays === undefined || delays.length === 0 ? retryDelaysMs : delays;
  const runs = attempts ?? (delays ?? wanted).length + 1;
  // No queue is declared for a delay that never comes.
  return { delaysMs: wanted.slice(0, Math.max(1, runs - 1)), attempts: runs };
}

function retryFaults({ delays = [], attempts = 1 }: RetryOptions = {}): string[] {
  const faults: string[] = [];
  if (delays.some((delay) => !isWhole(delay, 1, LONGEST_DELAY_MS))) {
    faults.push(
      `@Retry's delays are whole milliseconds from 1 to ${LONGEST_DELAY_MS}, a day; got [${delays.join(', ')}].`,
    );
  }
  if (!isWhole(attempts, 1, MOST_ATTEMPTS)) {
    faults.push(
      `@Retry's attempts are a whole number from 1, no retry, to ${MOST_ATTEMPTS}; got ${attempts}.`,
    );
  }
  return faults;
}

/** Notes the queue among `own`, and tells what is wrong with it. */
function queueFaults(queue: OwnQueue | undefined, own: Map<string, OwnQueue>): string[] {
  if (queue === undefined) {
    return [];
  }
  const { name, concurrency } = queue;
  const known = own.get(name) ?? queue;
  own.set(name, known);
  const faults: string[] = [];
  if (!QUEUE_NAME.test(name)) {
    faults.push(
      `the queue name "${name}" must be 1 to 100 letters, digits, - or _, and not dead, retry, suspects or notes.`,
    );
  }
  if (concurrency !== undefined && !isWhole(concurrency, 1, MOST_CONCURRENCY)) {
    faults.push(
      `the queue ${name} has the concurrency ${concurrency}: give a whole number from 1 to ${MOST_CONCURRENCY}.`,
    );
  }
  if (known.ordered !== queue.ordered || known.concurrency !== concurrency) {
    faults.push(
      `the queue ${name} is described in two ways: its handlers must agree on @Ordered and on concurrency.`,
    );
  }
  return faults;
}

function isWhole(value: number, from: number, to: number): boolean {
  return Number.isInteger(value) && value >= from && value <= to;
}
