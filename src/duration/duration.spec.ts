import { durationText, milliseconds, type Duration } from './duration.js';

describe('milliseconds', () => {
  it.each<[Duration, number]>([
    ['1ms', 1],
    ['500ms', 500],
    ['30s', 30_000],
    ['15m', 900_000],
    ['24h', 86_400_000],
    ['90d', 7_776_000_000],
    ['36500d', 3_153_600_000_000],
  ])('reads %s as %d', (duration, ms) => {
    expect(milliseconds(duration)).toBe(ms);
  });

  it.each(['0s', '-1s', '1.5h', '1e3s', '10', 's', '', ' 1s', '1s ', '1S', '1w', '01s', '1s1s'])(
    'refuses "%s" and says how to write it',
    (duration) => {
      expect(() => milliseconds(duration as Duration)).toThrow(RangeError);
      expect(() => milliseconds(duration as Duration)).toThrow("write it like '500ms'");
    },
  );

  it.each<Duration>(['36501d', '999999999d', '999999999h'])(
    'refuses %s, which no timestamp reaches',
    (duration) => {
      expect(() => milliseconds(duration)).toThrow('at most 36500d');
    },
  );
});

describe('durationText', () => {
  it.each<[number, string]>([
    [0, '0ms'],
    [1, '1ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [1_500, '1s 500ms'],
    [60_000, '1m'],
    [3_599_001, '1h'],
    [90_061_000, '1d 2h'],
    [86_400_000, '1d'],
    [5_807_400_000, '67d 6h'],
  ])('says %d ms as %s', (ms, text) => {
    expect(durationText(ms)).toBe(text);
  });
});
