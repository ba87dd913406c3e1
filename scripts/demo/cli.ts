import { fork } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:os';
import { join } from 'node:path';
import { parseCommand, USAGE, type DemoOptions } from './options.js';
import { STOP_SIGNALS } from './signals.js';

/**
 * Runs the demo in a process of its own. tsx kills a program that does not answer a signal within 60
 * milliseconds, which is soon for one that is busy publishing; this one is never busy.
 */
async function demo(options: DemoOptions): Promise<number> {
  const run = fork(join(import.meta.dirname, 'run.ts'), [JSON.stringify(options)]);
  for (const name of STOP_SIGNALS) process.on(name, () => run.kill(name));
  const [code, signal] = (await once(run, 'exit')) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + constants.signals[signal!];
}

async function main(args: readonly string[]): Promise<number> {
  const command = parseCommand(args);
  switch (command.kind) {
    case 'help':
      console.log(USAGE);
      return 0;
    case 'mistake':
      console.error(`${command.complaint}\n\n${USAGE}`);
      return 2;
    case 'run':
      return demo(command.options);
  }
}

process.exitCode = await main(process.argv.slice(2));
