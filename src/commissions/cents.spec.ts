import { cents } from './cents.js';

describe('cents', () => {
  it.each([0n, -1n, 6_495n, 9_223_372_036_854_775_807n])('keeps %d exact both ways', (amount) => {
    const text: unknown = cents.to(amount);
    expect(text).toBe(`${amount}`);
    expect(cents.from(text)).toBe(amount);
  });

  it('leaves out what is not set', () => {
    expect(cents.from(null)).toBeNull();
    expect(cents.to(undefined)).toBeUndefined();
  });
});
