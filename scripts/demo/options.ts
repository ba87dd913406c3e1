import { parseArgs } from 'node:util';
import { reasonOf } from '../services/errors.js';

const DEFAULT_SALES = 5_000;
const MAX_SALES = 1_000_000;

export const USAGE = `Usage: npm run demo -- [options]

Publishes a month of sales to RabbitMQ, many of them more than once, kills a consumer half-way,
publishes the whole month again, and counts in PostgreSQL what was posted.

  --sales N   how many sales, 1 to ${MAX_SALES.toLocaleString('en')}; default ${DEFAULT_SALES.toLocaleString('en')}
  --naive     the same traffic against the consumer that people write first
  --json      the result as one JSON object on stdout, all else on stderr; with npm run -s
  --help      this text

Exit code: 0 when no commission was lost, posted twice or wrong (with --naive: when it ran), 1 when
one was or the demo failed, 2 for a bad option, 130 after Ctrl-C. docs/demo.md explains the table.
`;

export interface DemoOptions {
  sales: number;
  naive: boolean;
  json: boolean;
}

export type Command =
  { kind: 'run'; options: DemoOptions } | { kind: 'help' } | { kind: 'mistake'; complaint: string };

export function parseCommand(args: readonly string[]): Command {
  try {
    const { values } = parseArgs({
      args: [...args],
      options: {
        sales: { type: 'string', default: String(DEFAULT_SALES) },
        naive: { type: 'boolean', default: false },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    const { sales, naive, json, help } = values;
    return help ? { kind: 'help' } : { kind: 'run', options: { sales: count(sales), naive, json } };
  } catch (error) {
    return { kind: 'mistake', complaint: reasonOf(error) };
  }
}

function count(text: string): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= 1 && value <= MAX_SALES) return value;
  throw new RangeError(`--sales must be a whole number from 1 to ${MAX_SALES}, not "${text}".`);
}
