/** Numbers from 0 to below 1, the same ones for the same seed: a failure can be seen again. */
export type Random = () => number;

/** The generator mulberry32. */
export function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from `min` to `max`, both included. */
export function integer(random: Random, min: number, max: number): number {
  return min + Math.floor(random() * (max - min + 1));
}

export function oneOf<T>(random: Random, values: ArrayLike<T>): T {
  return values[integer(random, 0, values.length - 1)] as T;
}

/** A text of at most `maxLength` of the given characters. */
export function text(random: Random, characters: string, maxLength: number): string {
  return listOf(random, maxLength, () => oneOf(random, characters)).join('');
}

export function listOf<T>(random: Random, maxLength: number, item: () => T): T[] {
  return Array.from({ length: integer(random, 0, maxLength) }, item);
}

export function shuffled<T>(random: Random, values: readonly T[]): T[] {
  return values
    .map((value) => ({ value, rank: random() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ value }) => value);
}
