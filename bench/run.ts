import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { ConfirmChannel } from 'amqplib';
import type { Pool } from 'pg';
import type { Contender } from './contenders.js';
import { SETTINGS_VARIABLE, type RunReport, type RunSettings } from './contenders/run-settings.js';
import { distinctMessages, leftOver, preload } from './traffic.js';

const RUN_TIMEOUT_MS = 300_000;

export interface Run {
  contender: Contender;
  settings: RunSettings;
  cpuProfileFolder: string | undefined;
}

/** One contender, once: preloaded queue, its own process, and a check that every effect is there once. */
export async function measure(run: Run, pool: Pool, channel: ConfirmChannel): Promise<RunReport> {
  const { contender, settings } = run;
  await pool.query('TRUNCATE processed_message, commission, salesperson_balance');
  await preload(channel, settings, contender);
  const report = await runProcess(run);
  await verify(pool, contender, settings);
  return report;
}

/** The template itself declares the queue that all use: it starts, and stops. */
export async function declareQueue(settings: RunSettings): Promise<void> {
  const { child, ended } = start('template', settings, []);
  child.send('stop');
  await ended;
}

async function runProcess({ contender, settings, cpuProfileFolder }: Run): Promise<RunReport> {
  const { child, ended } = start(
    contender.program,
    settings,
    profiling(cpuProfileFolder, contender),
  );
  const reported = once(child, 'message') as Promise<[RunReport]>;
  const first = await Promise.race([reported, ended]);
  if (first === undefined) {
    throw new Error(`(${contender.letter}) ended before its last message.`);
  }
  child.send('stop');
  await ended;
  return first[0];
}

interface Started {
  child: ChildProcess;
  /** Rejects with what it printed when it did not end well. */
  ended: Promise<undefined>;
}

function start(program: string, settings: RunSettings, nodeOptions: string[]): Started {
  const child = fork(`dist/bench/contenders/${program}.js`, {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      [SETTINGS_VARIABLE]: JSON.stringify(settings),
    },
    execArgv: ['--enable-source-maps', ...nodeOptions],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const output = outputOf(child);
  const timer = setTimeout(() => child.kill('SIGKILL'), RUN_TIMEOUT_MS);
  const ended = once(child, 'exit').then(([code]) => {
    clearTimeout(timer);
    if (code !== 0) {
      throw new Error(`${program} ended with ${String(code)}:\n${output()}`);
    }
    return undefined;
  });
  return { child, ended };
}

function profiling(folder: string | undefined, { letter }: Contender): string[] {
  return folder === undefined
    ? []
    : [
        '--cpu-prof',
        `--cpu-prof-dir=${folder}`,
        `--cpu-prof-name=${letter}-${Date.now()}.cpuprofile`,
      ];
}

function outputOf(child: ChildProcess): () => string {
  let text = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding('utf8').on('data', (chunk: string) => {
      text = (text + chunk).slice(-4_000);
    });
  }
  return () => text;
}

/** Every sale has one commission, and the balances hold all of them. */
async function verify(pool: Pool, contender: Contender, settings: RunSettings): Promise<void> {
  const { rows } = await pool.query<Record<'effects' | 'sales' | 'posted' | 'balances', string>>(
    `SELECT count(*) AS effects, count(DISTINCT sale_id) AS sales, sum(amount_cents) AS posted,
            (SELECT coalesce(sum(total_cents), 0) FROM salesperson_balance) AS balances
       FROM commission`,
  );
  const { effects, sales, posted, balances } = rows[0]!;
  const wanted = String(distinctMessages(settings, contender.duplicates));
  const left = await leftOver(settings.rabbitmqUrl, settings.queue);
  const wantedBalances = settings.workload === 'example' ? posted : '0';
  if (effects !== wanted || sales !== wanted || balances !== wantedBalances || left !== 0) {
    throw new Error(
      `(${contender.letter}) is not correct: ${wanted} sales wanted, ${effects} effects for ${sales} ` +
        `sales, balances of ${balances} wanted ${wantedBalances}, ${left} messages left.`,
    );
  }
}
