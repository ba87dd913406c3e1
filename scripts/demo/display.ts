/** How far a phase is. */
export interface Status {
  done: number;
  total: number;
  detail: string;
}

/** Where progress is shown. One phase at a time; `update` and `note` belong to the phase that runs. */
export interface Display {
  begin(title: string): void;
  update(status: Status): void;
  /** A line that stays. */
  note(line: string): void;
  end(title: string, succeeded: boolean, seconds: number): void;
}

export const thousands = (value: number): string => Math.round(value).toLocaleString('en');

export const tenths = (value: number): string =>
  value.toLocaleString('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });

/** A terminal gets one line that changes; files, pipes and build servers get lines that follow each other. */
export const isTerminal = (stream: NodeJS.WriteStream): boolean =>
  stream.isTTY && !process.env.CI && process.env.TERM !== 'dumb';

/** Runs the parts of the demo, and shows each. Silent once the run has been interrupted. */
export class Phases {
  constructor(
    private readonly display: Display,
    private readonly signal?: AbortSignal,
  ) {}

  async run<T>(title: string, work: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    const end = (succeeded: boolean): void => {
      if (this.silent) return;
      this.display.end(title, succeeded, (performance.now() - startedAt) / 1000);
    };
    this.display.begin(title);
    try {
      const result = await work();
      end(true);
      return result;
    } catch (error) {
      end(false);
      throw error;
    }
  }

  readonly note = (line: string): void => {
    if (!this.silent) this.display.note(line);
  };

  update(status: Status): void {
    if (!this.silent) this.display.update(status);
  }

  private get silent(): boolean {
    return this.signal?.aborted ?? false;
  }
}
