import { setImmediate as endOfTurn } from 'node:timers/promises';
import { holds } from '../../test/support/eventually.js';
import { withinTime } from './within-time.js';

const never = new Promise<never>(() => undefined);

describe('withinTime', () => {
  it('gives what the promise gives', async () => {
    expect(await withinTime(10_000, Promise.resolve(7))).toBe(7);
  });

  it('rejects with what the promise rejects with', async () => {
    const error = new Error('its own');
    await expect(withinTime(10_000, Promise.reject(error))).rejects.toBe(error);
  });

  it('rejects when the time is up', async () => {
    await expect(withinTime(10, never)).rejects.toThrow('no answer within 10 ms');
  });

  it('rejects with the error that the caller makes for it, and makes none in time', async () => {
    const made: Error[] = [];
    const late = (): Error => {
      made.push(new RangeError('late'));
      return made[0]!;
    };
    await withinTime(10, Promise.resolve(), late);
    await holds(() => expect(made).toEqual([]), 30);
    await expect(withinTime(10, never, late)).rejects.toThrow(RangeError);
  });

  it('leaves no timer behind', async () => {
    const timers = (): number =>
      process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    await withinTime(10_000, Promise.resolve());
    await withinTime(10_000, Promise.reject(new Error('x'))).catch(() => undefined);
    expect(timers()).toBe(before);
  });

  it('swallows a rejection that comes too late', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): unknown => unhandled.push(error);
    process.on('unhandledRejection', note);
    let fail!: (error: Error) => void;
    const late = new Promise<never>((_, reject) => {
      fail = reject;
    });
    await expect(withinTime(5, late)).rejects.toThrow('no answer');
    fail(new Error('too late'));
    // Node reports a rejection when the turn of the event loop in which it came has ended.
    await endOfTurn();
    process.off('unhandledRejection', note);
    expect(unhandled).toEqual([]);
  });
});
