import type { Workload } from './contenders/run-settings.js';

export interface Contender {
  letter: string;
  title: string;
  /** In bench/contenders; each run is a process of its own. */
  program: string;
  workloads: readonly Workload[];
  /** Reads Nest's envelope only; the others read the bare body. */
  nestEnvelope?: true;
  /** Measured on a second copy of every message. */
  duplicates?: true;
}

/** In the order in which issue and documentation name them. */
export const CONTENDERS: readonly Contender[] = [
  {
    letter: 'a',
    title: 'amqplib and pg by hand, no deduplication',
    program: 'by-hand-without-deduplication',
    workloads: ['insert'],
  },
  {
    letter: 'b',
    title: 'amqplib and pg by hand, prepared and pipelined',
    program: 'by-hand-with-deduplication',
    workloads: ['insert', 'example'],
  },
  {
    letter: 'p',
    title: 'the same, each statement awaited, none prepared',
    program: 'by-hand-plain',
    workloads: ['insert', 'example'],
  },
  {
    letter: 'c',
    title: 'Nest as usual, TypeORM in a transaction',
    program: 'nest-as-usual',
    workloads: ['insert', 'example'],
    nestEnvelope: true,
  },
  {
    letter: 'e',
    title: 'this template',
    program: 'template',
    workloads: ['insert', 'example'],
  },
  {
    letter: 'h',
    title: 'this template, all duplicates',
    program: 'template',
    workloads: ['insert'],
    duplicates: true,
  },
];

export interface Ratio {
  of: string;
  to: string;
}

/** What the letters are compared by, round by round. */
export const RATIOS: readonly Ratio[] = [
  { of: 'e', to: 'b' },
  { of: 'e', to: 'p' },
  { of: 'e', to: 'c' },
  { of: 'e', to: 'a' },
  { of: 'h', to: 'e' },
];
