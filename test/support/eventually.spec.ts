import { setTimeout as sleep } from 'node:timers/promises';
import { eventually, holds } from './index.js';

describe('eventually', () => {
  it('returns what the assertion returns once it passes', async () => {
    let tries = 0;
    const assertion = (): number => {
      tries += 1;
      expect(tries).toBe(3);
      return tries;
    };

    await expect(eventually(assertion, { intervalMs: 1 })).resolves.toBe(3);
  });

  it("throws the assertion's own last error when the time is up", async () => {
    const errors: Error[] = [];
    const assertion = (): void => {
      errors.push(new Error(`try ${errors.length + 1}`));
      throw errors.at(-1) as Error;
    };

    const failure: unknown = await eventually(assertion, { timeoutMs: 50, intervalMs: 5 }).catch(
      (error: unknown) => error,
    );

    expect(errors.length).toBeGreaterThan(1);
    expect(failure).toBe(errors.at(-1));
  });

  it('fails in time when the assertion hangs', async () => {
    const hangs = (): Promise<never> => new Promise(() => undefined);

    await expect(eventually(hangs, { timeoutMs: 30 })).rejects.toThrow('still running after 30 ms');
  });
});

describe('holds', () => {
  it('passes when the assertion never fails', async () => {
    await holds(() => expect(1).toBe(1), 30);
  });

  it('throws as soon as the assertion fails', async () => {
    let broken = false;
    const breaks = sleep(30).then(() => (broken = true));

    await expect(
      holds(() => expect(broken).toBe(false), 10_000, { intervalMs: 5 }),
    ).rejects.toThrow();
    await breaks;
  });
});
