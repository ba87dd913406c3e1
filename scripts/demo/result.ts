import type { Audit } from './audit.js';
import { thousands } from './display.js';

/** What a run has shown. Printed by --json as it is. */
export interface Result extends Audit {
  consumer: 'service' | 'naive';
  sales: number;
  /** Messages that RabbitMQ has confirmed. */
  published: number;
  /** Messages that were acknowledged without effect. */
  duplicatesDiscarded: number;
  deadLetters: number;
  /** Messages still in a queue. */
  waiting: number;
  /** From the first message sent to the last one processed, for both passes together. */
  seconds: number;
  messagesPerSecond: number;
  /** What is wrong, in words. */
  faults: string[];
  ok: boolean;
}

type Counts = Omit<Result, 'duplicatesDiscarded' | 'messagesPerSecond' | 'faults' | 'ok'>;

export function resultOf(counts: Counts): Result {
  const { consumer, sales, published, posted, ...rest } = counts;
  const { deadLetters, waiting, seconds } = rest;
  const faults = faultsOf(counts);
  return {
    consumer,
    sales,
    published,
    posted,
    duplicatesDiscarded: published - posted - deadLetters - waiting,
    ...rest,
    seconds: Math.round(seconds * 10) / 10,
    messagesPerSecond: Math.round(published / seconds),
    faults,
    ok: faults.length === 0,
  };
}

function faultsOf(counts: Counts): string[] {
  const { lost, postedTwice, surplus, wrongCommissions, wrongBalances, deadLetters, waiting } =
    counts;
  const possible: [number, string][] = [
    [lost, 'published sales without a commission'],
    [postedTwice, `sales posted more than once, with ${thousands(surplus)} commissions too many`],
    [wrongCommissions, 'commissions that differ from what their sale says'],
    [wrongBalances, 'salespersons with a wrong balance'],
    [deadLetters, 'dead letters'],
    [waiting, 'messages still in a queue'],
  ];
  return possible
    .filter(([count]) => count > 0)
    .map(([count, what]) => `${what}: ${thousands(count)}`);
}
