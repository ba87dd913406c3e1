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
