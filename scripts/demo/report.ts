import { styleText } from 'node:util';
import { tenths, thousands } from './display.js';
import type { Result } from './result.js';

type Row = [label: string, value: string, bad?: boolean];

/** The table at the end, and what it means. */
export function report(result: Result, colours: boolean): string {
  const rows = rowsOf(result);
  const labelWidth = Math.max(...rows.map(([label]) => label.length));
  const valueWidth = Math.max(...rows.map(([, value]) => value.length));
  const table = rows.map(([label, value, bad]) => {
    const line = `  ${label.padEnd(labelWidth)}   ${value.padStart(valueWidth)}`;
    return colours && bad ? styleText('red', line) : line;
  });
  const verdict = verdictOf(result);
  const colour = result.ok ? 'green' : 'red';
  return ['', ...table, '', colours ? styleText(colour, verdict) : verdict].join('\n');
}

function rowsOf(result: Result): Row[] {
  const mustBeNone = (label: string, value: number): Row => [label, thousands(value), value > 0];
  return [
    ['published', thousands(result.published)],
    ['posted', thousands(result.posted)],
    ['duplicates discarded', thousands(result.duplicatesDiscarded)],
    mustBeNone('lost', result.lost),
    mustBeNone('posted twice', result.postedTwice),
    mustBeNone('wrong commissions', result.wrongCommissions),
    mustBeNone('wrong balances', result.wrongBalances),
    mustBeNone('dead letters', result.deadLetters),
    mustBeNone('still in a queue', result.waiting),
    ['seconds', tenths(result.seconds)],
    ['messages a second', thousands(result.messagesPerSecond)],
  ];
}

function verdictOf(result: Result): string {
  const { sales, consumer, ok, faults, surplus, surplusCents, postedTwice, lost } = result;
  if (consumer === 'naive') {
    return [
      `The naive consumer posted ${thousands(postedTwice)} of ${thousands(sales)} sales twice or more often:`,
      `${thousands(surplus)} commissions too many, which cost ${money(surplusCents)}. It lost ${thousands(lost)}.`,
    ].join('\n');
  }
  if (!ok) return ['This is wrong:', ...faults].join('\n  ');
  return `Each of the ${thousands(sales)} sales was posted once, and every balance is right.`;
}

const money = (cents: number): string =>
  (cents / 100).toLocaleString('en', { style: 'currency', currency: 'EUR' });
