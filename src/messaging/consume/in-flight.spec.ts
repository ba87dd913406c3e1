import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import { InFlight } from './in-flight.js';

const never = (): Promise<void> => new Promise(() => undefined);
const now = Promise.resolve();

describe('InFlight', () => {
  const warnings: string[] = [];

  beforeEach(() => {
    warnings.length = 0;
    const discard = (): void => undefined;
    Logger.overrideLogger({
      log: discard,
      error: discard,
      warn: (text: string) => warnings.push(text),
    });
  });

  afterAll(() => Logger.overrideLogger(true));

  it('drains at once when nothing is in work', async () => {
    await new InFlight().drain(10_000, now);
    expect(warnings).toEqual([]);
  });

  it('waits for every message that is in work', async () => {
    const inFlight = new InFlight();
    const ended: number[] = [];
    for (const ms of [5, 30, 15]) {
      inFlight.add(sleep(ms).then(() => void ended.push(ms)));
    }
    await inFlight.drain(10_000, now);
    expect(ended).toEqual([5, 15, 30]);
    expect(warnings).toEqual([]);
  });

  it('waits for a message that came while consuming was being cancelled', async () => {
    const inFlight = new InFlight();
    let ended = false;
    const cancelled = sleep(10).then(() => {
      inFlight.add(sleep(20).then(() => void (ended = true)));
    });
    await inFlight.drain(10_000, cancelled);
    expect(ended).toBe(true);
  });

  it('gives up after the grace, and says how many messages are left', async () => {
    const inFlight = new InFlight();
    inFlight.add(now);
    inFlight.add(never());
    inFlight.add(never());
    await inFlight.drain(20, now);
    expect(warnings).toEqual(['2 messages did not end within 20 ms and will be redelivered.']);
  });

  it('gives up after the grace when consuming cannot be cancelled', async () => {
    const started = performance.now();
    await new InFlight().drain(20, never());
    expect(performance.now() - started).toBeLessThan(5_000);
  });
});
