import { tenths, thousands, type Display, type Status } from './display.js';

const QUIET_MS = 5_000;

/** Lines that follow each other, few enough for the log of a build server. */
export class PlainDisplay implements Display {
  private saidAt = 0;

  constructor(private readonly write: (line: string) => void) {}

  begin(title: string): void {
    this.say(`${title} …`);
  }

  update({ done, total, detail }: Status): void {
    if (performance.now() - this.saidAt < QUIET_MS) return;
    this.say(`  ${thousands(done)} of ${thousands(total)} messages, ${detail}`);
  }

  note(line: string): void {
    this.say(line.replaceAll(/^/gm, '  '));
  }

  end(title: string, succeeded: boolean, seconds: number): void {
    this.say(`${title}: ${succeeded ? 'done' : 'failed'}, ${tenths(seconds)} s`);
  }

  private say(line: string): void {
    this.saidAt = performance.now();
    this.write(line);
  }
}
