const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** A century: longer than any key is kept, and far from where PostgreSQL's timestamps end. */
const MAX_DAYS = 36_500;

/** A number and its unit: `'500ms'`, `'30s'`, `'15m'`, `'24h'`, `'90d'`. */
export type Duration = `${number}${keyof typeof UNITS}`;

/**
 * @returns milliseconds
 * @throws RangeError when it is not a positive whole number with a unit, or over a century
 * @example milliseconds('90d') // 7_776_000_000
 */
export function milliseconds(duration: Duration): number {
  const [, amount, unit] = /^([1-9]\d{0,8})(ms|s|m|h|d)$/.exec(duration) ?? [];
  if (amount === undefined) {
    throw new RangeError(`'${duration}' is not a duration: write it like '500ms', '30s' or '90d'`);
  }
  const result = Number(amount) * UNITS[unit as keyof typeof UNITS];
  if (result > MAX_DAYS * UNITS.d) {
    throw new RangeError(`'${duration}' is too long: at most ${MAX_DAYS}d`);
  }
  return result;
}

type Unit = [name: string, ms: number];

/**
 * A length of time for people, in its two largest units, rounded up.
 *
 * @param ms milliseconds, not negative
 * @example durationText(90_061_000) // '1d 2h'
 */
export function durationText(ms: number): string {
  const units: Unit[] = Object.entries(UNITS).toReversed();
  const largest = units.findIndex(([, unitMs]) => ms >= unitMs);
  if (largest === -1) {
    return '0ms';
  }
  const [big, small = big] = units.slice(largest) as [Unit, Unit?];
  const rounded = Math.ceil(ms / small[1]) * small[1];
  if (rounded > ms) {
    // It may have become one of the next larger unit.
    return durationText(rounded);
  }
  const parts: Unit[] = [
    [big[0], Math.floor(ms / big[1])],
    [small[0], (ms % big[1]) / small[1]],
  ];
  return parts
    .filter(([, count]) => count > 0)
    .map(([name, count]) => `${count}${name}`)
    .join(' ');
}
