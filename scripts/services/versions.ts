/** Compares dotted versions; a Debian epoch and revision are ignored (`1:3.10.8-1+deb12u1` is 3.10.8). */
export function atLeast(version: string, minimum: string): boolean {
  const parts = (text: string): number[] =>
    text
      .replace(/^\d+:/, '')
      .split(/[^\d.]/)[0]!
      .split('.')
      .map(Number);
  const found = parts(version);
  const wanted = parts(minimum);
  for (const [index, part] of wanted.entries()) {
    const difference = (found[index] ?? 0) - part;
    if (difference !== 0) return difference > 0;
  }
  return true;
}
