import { cpus, loadavg } from 'node:os';
import { RATIOS } from './contenders.js';
import { WORKLOADS, type Workload } from './contenders/run-settings.js';
import { cpuPerMessage, rates, ratioOf, spread, type Series, type Spread } from './results.js';

const TITLES: Record<Workload, string> = {
  insert: 'insert: the effect is one INSERT',
  example: "example: the commission and its balance, 100 hot rows; the template's shipped handler",
};

/** `2 × AMD EPYC, Node v20.20.2, load 0.3` */
export function machineLine(versions: string, load: number): string {
  const [first] = cpus();
  const cpu = `${cpus().length} × ${first?.model.trim() ?? 'unknown CPU'}`;
  return `${cpu}, Node ${process.version}, ${versions}, load before ${load.toFixed(1)}`;
}

export const loadNow = (): number => loadavg()[0]!;

/** A Markdown table for each workload, so that a run can be pasted into the documentation. */
export function asText(all: readonly Series[]): string {
  return byWorkload(all)
    .map(([workload, series]) =>
      [TITLES[workload], '', ...table(series), '', ...ratioLines(series), ''].join('\n'),
    )
    .join('\n');
}

export function asJson(all: readonly Series[], machine: string): string {
  const result = all.map((series) => ({
    contender: series.contender.letter,
    title: series.contender.title,
    workload: series.workload,
    messagesPerSecond: { ...spread(rates(series)), rounds: rates(series) },
    cpuMsPerMessage: cpuPerMessage(series),
    rssMb: spread(series.reports.map(({ rssMb }) => rssMb)),
  }));
  const ratios = byWorkload(all).flatMap(([workload, series]) =>
    RATIOS.map((ratio) => ({ workload, ...ratio, ...ratioOf(series, ratio) })).filter(
      ({ median }) => median !== undefined,
    ),
  );
  return JSON.stringify({ machine, result, ratios }, undefined, 2);
}

function byWorkload(all: readonly Series[]): [Workload, Series[]][] {
  return WORKLOADS.map((name): [Workload, Series[]] => [
    name,
    all.filter(({ workload }) => workload === name),
  ]).filter(([, series]) => series.length > 0);
}

function table(series: readonly Series[]): string[] {
  return [
    '|     | contender | messages/s | spread | CPU ms/message | RSS MB |',
    '| --- | --- | ---: | ---: | ---: | ---: |',
    ...series.map((one) => {
      const rate = spread(rates(one));
      const cells = [
        one.contender.letter,
        one.contender.title,
        whole(rate.median),
        `${whole(rate.min)}–${whole(rate.max)}`,
        cpuPerMessage(one).median.toFixed(2),
        whole(spread(one.reports.map(({ rssMb }) => rssMb)).median),
      ];
      return `| ${cells.join(' | ')} |`;
    }),
  ];
}

function ratioLines(series: readonly Series[]): string[] {
  return RATIOS.map((ratio) => ({ ...ratio, value: ratioOf(series, ratio) }))
    .filter((ratio): ratio is typeof ratio & { value: Spread } => ratio.value !== undefined)
    .map(({ of, to, value: { median, min, max } }) => {
      const range = `${min.toFixed(2)}–${max.toFixed(2)}`;
      return `(${of}) / (${to}) = ${median.toFixed(2)}  (rounds ${range})`;
    });
}

const whole = (value: number): string => Math.round(value).toLocaleString('en');
