import { parseArgs } from 'node:util';
import { CONTENDERS } from './contenders.js';
import { WORKLOADS } from './contenders/run-settings.js';

export const USAGE = `Usage: npm run bench -- [options]

Measures this template beside hand-written loops and Nest as usual: interleaved, on the same servers.

  --messages N      measured messages of each run (default 4000)
  --warm-up N       messages before the measurement (default 2000)
  --rounds N        runs of each contender (default 3)
  --concurrency N   messages in work at the same time (default 16)
  --workload NAME   insert or example (default: both)
  --only a,b,e      these contenders: ${CONTENDERS.map(({ letter }) => letter).join(', ')}
  --json            the result as JSON on standard output
  --cpu-prof DIR    a CPU profile of each contender's process in DIR
  --help
`;

export type Options = ReturnType<typeof readOptions>;

/** @throws Error that names what is wrong with the arguments */
export function readOptions(args: readonly string[]) {
  const { values } = parseArgs({
    args: [...args],
    options: {
      messages: { type: 'string', default: '4000' },
      'warm-up': { type: 'string', default: '2000' },
      rounds: { type: 'string', default: '3' },
      concurrency: { type: 'string', default: '16' },
      workload: { type: 'string' },
      only: { type: 'string' },
      json: { type: 'boolean', default: false },
      'cpu-prof': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const only = values.only?.split(',');
  return {
    messages: count('--messages', values.messages),
    warmUp: count('--warm-up', values['warm-up']),
    rounds: count('--rounds', values.rounds),
    concurrency: count('--concurrency', values.concurrency),
    entries: WORKLOADS.filter((workload) => workload === (values.workload ?? workload)).flatMap(
      (workload) =>
        CONTENDERS.filter(({ letter }) => only?.includes(letter) ?? true)
          .filter(({ workloads }) => workloads.includes(workload))
          .map((contender) => ({ contender, workload })),
    ),
    json: values.json,
    cpuProfileFolder: values['cpu-prof'],
    help: values.help,
  };
}

function count(option: string, value: string): number {
  const number = Number(value);
  if (!Number.isInteger(number) || number < 1) {
    throw new Error(`${option} must be a whole number from 1, and is ${value}`);
  }
  return number;
}
