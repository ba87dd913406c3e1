import { styleText } from 'node:util';
import { tenths, thousands, type Display, type Status } from './display.js';

const FRAME_MS = 80;
const SPINNER = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const WIDEST_BAR = 32;
/** For a terminal that does not say how wide it is. */
const NARROW = 80;
const TITLE_WIDTH = 23;
const CLEAR_LINE = '\r\u001B[2K';

/** For a terminal: what is done stays, below it one line that changes. */
export class LiveDisplay implements Display {
  private title = '';
  private status: Status | undefined;
  private startedAt = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly stream: NodeJS.WriteStream) {}

  begin(title: string): void {
    this.title = title;
    this.status = undefined;
    this.startedAt = performance.now();
    clearInterval(this.timer);
    this.timer = setInterval(() => this.draw(), FRAME_MS);
    this.timer.unref();
    this.draw();
  }

  update(status: Status): void {
    this.status = status;
  }

  note(line: string): void {
    this.print(styleText('dim', line.replaceAll(/^/gm, '    ')));
    if (this.timer) this.draw();
  }

  end(title: string, succeeded: boolean, seconds: number): void {
    clearInterval(this.timer);
    this.timer = undefined;
    const mark = succeeded ? styleText('green', '✔') : styleText('red', '✖');
    this.print(`${mark} ${title.padEnd(TITLE_WIDTH)} ${`${tenths(seconds)} s`.padStart(8)}`);
  }

  private print(line: string): void {
    this.stream.write(`${CLEAR_LINE}${line}\n`);
  }

  private draw(): void {
    const seconds = (performance.now() - this.startedAt) / 1000;
    const spinner = SPINNER[Math.floor((seconds * 1000) / FRAME_MS) % SPINNER.length]!;
    const head = `${spinner} ${this.title.padEnd(TITLE_WIDTH)} `;
    const room = (this.stream.columns || NARROW) - 1 - head.length;
    const progress = this.status ? bar(this.status, room) : `${tenths(seconds)} s`.padStart(8);
    // A line that wraps cannot be cleared.
    this.stream.write(CLEAR_LINE + head + progress.slice(0, Math.max(room, 0)));
  }
}

function bar({ done, total, detail }: Status, room: number): string {
  const text = ` ${thousands(done)} of ${thousands(total)}, ${detail}`;
  const width = Math.max(0, Math.min(WIDEST_BAR, room - text.length));
  const filled = Math.floor((done / total) * width);
  return '█'.repeat(filled) + '░'.repeat(width - filled) + text;
}
