import { integer, listOf, oneOf, text, type Random } from './random.js';

export type Json = string | number | boolean | null | Json[] | { [name: string]: Json };

/** Any JSON value, with the characters in its texts and names that a reader of JSON could stumble over. */
export function randomJson(random: Random, depth = 0): Json {
  switch (integer(random, 0, depth < 6 ? 5 : 2)) {
    case 0:
      return text(random, '[]{}"\\:, aé😀', 5);
    case 1:
      return integer(random, -9, 9);
    case 2:
      return oneOf(random, [true, false, null]);
    case 3:
      return Object.fromEntries(
        listOf(random, 3, () => [text(random, '[]{}"\\', 3), randomJson(random, depth + 1)]),
      );
    default:
      return listOf(random, 3, () => randomJson(random, depth + 1));
  }
}
