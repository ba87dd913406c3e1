import { constants } from 'node:os';
import { reasonOf } from '../services/errors.js';
import { ServicesError } from '../services/index.js';
import { isTerminal, Phases, type Display } from './display.js';
import { DemoError, Interrupted } from './errors.js';
import { LiveDisplay } from './live-display.js';
import { Month } from './month.js';
import type { DemoOptions } from './options.js';
import { PlainDisplay } from './plain-display.js';
import { Releases } from './releases.js';
import { report } from './report.js';
import type { Result } from './result.js';
import { setTheStage } from './stage.js';
import { STOP_SIGNALS } from './signals.js';

/** One Ctrl-C arrives more than once: from the terminal, and from each program between it and us. */
const SAME_SIGNAL_MS = 500;

async function demo(options: DemoOptions): Promise<number> {
  try {
    const result = await run(options, interruption());
    console.log(options.json ? JSON.stringify(result) : report(result, isTerminal(process.stdout)));
    return options.naive || result.ok ? 0 : 1;
  } catch (error) {
    if (error instanceof Interrupted) return error.exitCode;
    const expected = error instanceof DemoError || error instanceof ServicesError;
    console.error(expected ? error.message : error);
    if (options.json) console.log(JSON.stringify({ ok: false, faults: [reasonOf(error)] }));
    return 1;
  }
}

/** Gives back everything that it has opened, however it ends. */
async function run(options: DemoOptions, signal: AbortSignal): Promise<Result> {
  const display = displayFor(options);
  const phases = new Phases(display, signal);
  const releases = new Releases();
  const story = async (): Promise<Result> => {
    const stage = await setTheStage({ ...options, phases, releases, signal });
    return new Month(options, stage, phases, signal).run();
  };
  try {
    return await Promise.race([story(), abortOf(signal)]);
  } finally {
    const failures = await new Phases(display).run('Cleaning up', () => releases.close());
    for (const failure of failures) console.error(`Not cleaned up: ${reasonOf(failure)}`);
  }
}

function displayFor({ json }: DemoOptions): Display {
  return !json && isTerminal(process.stderr)
    ? new LiveDisplay(process.stderr)
    : new PlainDisplay((line) => console.error(line));
}

const abortOf = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Interrupted));
  });

/** Aborted by the first signal that asks to stop; a later one does not wait for the cleaning up. */
function interruption(): AbortSignal {
  const controller = new AbortController();
  let firstAt = Number.POSITIVE_INFINITY;
  const interrupt = (exitCode: number): void => {
    if (performance.now() - firstAt > SAME_SIGNAL_MS) process.exit(exitCode);
    firstAt = Math.min(firstAt, performance.now());
    controller.abort(new Interrupted(exitCode));
  };
  for (const name of STOP_SIGNALS) process.on(name, () => interrupt(128 + constants.signals[name]));
  process.on('disconnect', () => interrupt(1)); // cli.ts was killed
  return controller.signal;
}

// A reader that has gone, as in `| head`, must not keep the run from cleaning up.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

// Not left to end by itself: what was interrupted may still be waiting for something.
process.exit(await demo(JSON.parse(process.argv[2]!) as DemoOptions));
