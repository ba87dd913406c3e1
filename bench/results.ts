import type { Contender, Ratio } from './contenders.js';
import type { RunReport, Workload } from './contenders/run-settings.js';

/** The runs of one contender on one workload, a round each. */
export interface Series {
  contender: Contender;
  workload: Workload;
  messages: number;
  reports: RunReport[];
}

export interface Spread {
  median: number;
  min: number;
  max: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = (sorted.length - 1) / 2;
  return {
    median: (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2,
    min: sorted[0]!,
    max: sorted.at(-1)!,
  };
}

export function rates({ messages, reports }: Series): number[] {
  return reports.map(({ seconds }) => messages / seconds);
}

/** Milliseconds of the process's CPU for a message. */
export function cpuPerMessage({ messages, reports }: Series): Spread {
  return spread(reports.map(({ cpuSeconds }) => (cpuSeconds * 1000) / messages));
}

/** Both sides of each ratio ran in the same round, so that what slowed one slowed the other. */
export function ratioOf(all: readonly Series[], { of, to }: Ratio): Spread | undefined {
  const [above, below] = [of, to].map((wanted) =>
    all.find(({ contender }) => contender.letter === wanted),
  );
  if (above === undefined || below === undefined) {
    return undefined;
  }
  const lower = rates(below);
  return spread(rates(above).map((rate, round) => rate / lower[round]!));
}
