import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import amqp from 'amqplib';
import { ServicesError, up } from '../scripts/services/index.js';
import type { RunSettings } from './contenders/run-settings.js';
import { createGround, type Ground } from './ground.js';
import { readOptions, USAGE, type Options } from './options.js';
import { asJson, asText, loadNow, machineLine } from './report.js';
import { rates, type Series } from './results.js';
import { declareQueue, measure } from './run.js';

const QUEUE = 'bench';
const EXCHANGE = 'events';

/** Progress goes to stderr, so that stdout is the result and nothing else. */
const log = (line: string): void => console.error(line);

async function main(args: readonly string[]): Promise<number> {
  const options = optionsOf(args);
  if (options === undefined) {
    return 2;
  }
  if (options.help || options.entries.length === 0) {
    console.log(USAGE);
    return options.help ? 0 : 2;
  }
  // Children get the signal too and end; their run then fails, and what was created is dropped.
  process.once('SIGINT', () => log('Interrupted.'));
  const load = loadNow();
  const servers = await up({ log });
  await compileContenders();
  await using ground = await createGround(servers);
  const machine = machineLine(ground.versions, load);
  const series = await measureAll(options, ground);
  console.log(options.json ? asJson(series, machine) : `${machine}\n\n${asText(series)}`);
  return 0;
}

function optionsOf(args: readonly string[]): Options | undefined {
  try {
    return readOptions(args);
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${USAGE}`);
    return undefined;
  }
}

/** Their classes need decorator metadata, which tsx does not emit. */
async function compileContenders(): Promise<void> {
  const compiler = ['node_modules/typescript/bin/tsc', '-p', 'bench/tsconfig.contenders.json'];
  await promisify(execFile)(process.execPath, compiler);
}

/** Round by round, each contender once, so that whatever else the machine does meets all of them. */
async function measureAll(options: Options, ground: Ground): Promise<Series[]> {
  const series = options.entries.map((entry): Series => ({
    ...entry,
    messages: options.messages,
    reports: [],
  }));
  const connection = await amqp.connect(ground.rabbitmqUrl);
  try {
    const channel = await connection.createConfirmChannel();
    await declareQueue(settingsOf(series[0]!, options, ground));
    for (let round = 0; round < options.rounds; round++) {
      // Every second round runs backwards, so that a machine that slows down favours nobody.
      for (const one of round % 2 === 0 ? series : series.toReversed()) {
        const run = { ...one, ...options, settings: settingsOf(one, options, ground) };
        one.reports.push(await measure(run, ground.pool, channel));
        const rate = Math.round(rates(one).at(-1)!);
        log(`round ${round + 1}  ${one.workload}  (${one.contender.letter})  ${rate} messages/s`);
      }
    }
    return series;
  } finally {
    await connection.close();
  }
}

function settingsOf(
  { contender, workload }: Series,
  options: Options,
  ground: Ground,
): RunSettings {
  return {
    databaseUrl: ground.databaseUrl,
    rabbitmqUrl: ground.rabbitmqUrl,
    exchange: EXCHANGE,
    queue: QUEUE,
    workload,
    concurrency: options.concurrency,
    warmUp: contender.duplicates ? options.messages : options.warmUp,
    messages: options.messages,
  };
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof ServicesError ? error.message : error);
  process.exitCode = 1;
}
