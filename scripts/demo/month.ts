import { audit } from './audit.js';
import { tenths, thousands, type Phases } from './display.js';
import type { DemoOptions } from './options.js';
import { resultOf, type Result } from './result.js';
import type { Stage } from './stage.js';
import { firstPass, firstPassMessages, reprocessing, type Sending } from './traffic.js';
import { Watch, type Snapshot } from './watch.js';

/** So many times it looks again: a message on its way between two queues is in neither. */
const DRAINED_LOOKS = 2;
/** More, as the naive consumer cannot be asked to finish what it has started. */
const NAIVE_DRAINED_LOOKS = 20;

/** The traffic of a month, its disturbance, its repetition, and what came of it. */
export class Month {
  private readonly watch: Watch;
  private readonly firstTotal: number;
  /** Messages of earlier passes, and the time in which these moved. */
  private before = { messages: 0, ms: 0 };
  private startedAt = 0;

  constructor(
    private readonly options: Omit<DemoOptions, 'json'>,
    private readonly stage: Stage,
    private readonly phases: Phases,
    signal: AbortSignal,
  ) {
    this.firstTotal = firstPassMessages(options.sales);
    this.watch = new Watch({ ...stage, naive: options.naive, signal, onSnapshot: this.show });
  }

  async run(): Promise<Result> {
    const { sales, naive } = this.options;
    await this.phases.run('Month with repeats', () => this.firstPass());
    await this.phases.run('Month once more', () => this.secondPass());
    return this.phases.run('Counting', async () => {
      await this.stage.consumers.stop();
      const { confirmed, waiting, deadLetters } = await this.watch.look();
      return resultOf({
        consumer: naive ? 'naive' : 'service',
        sales,
        ...(await audit(this.stage.database.client, sales)),
        published: confirmed,
        waiting,
        deadLetters,
        seconds: this.before.ms / 1000,
      });
    });
  }

  private firstPass(): Promise<void> {
    return this.pass(firstPass(this.options.sales), async () => {
      const { consumers } = this.stage;
      await this.watch.until((snapshot) => processed(snapshot) >= this.firstTotal / 2);
      const pid = await consumers.crash(1);
      this.phases.note(`Consumer 1, process ${pid}, was killed (SIGKILL).`);
      const [, drainedAt] = await Promise.all([
        this.startAgain(),
        this.drained(this.firstTotal, DRAINED_LOOKS),
      ]);
      return drainedAt;
    });
  }

  private async startAgain(): Promise<void> {
    const startedAt = performance.now();
    await this.stage.consumers.start(1);
    const seconds = tenths((performance.now() - startedAt) / 1000);
    this.phases.note(`Consumer 1 is back after ${seconds} s.`);
  }

  private secondPass(): Promise<void> {
    const { sales, naive } = this.options;
    const looks = naive ? NAIVE_DRAINED_LOOKS : DRAINED_LOOKS;
    return this.pass(reprocessing(sales), () => this.drained(this.firstTotal + sales, looks));
  }

  /** @param consumed resolves with the moment (performance.now) from which nothing moved any more */
  private async pass(sendings: Iterable<Sending>, consumed: () => Promise<number>): Promise<void> {
    const { shop } = this.stage;
    this.startedAt = performance.now();
    const [, drainedAt] = await Promise.all([shop.publish(sendings), consumed()]);
    const ms = this.before.ms + drainedAt - this.startedAt;
    this.before = { messages: shop.confirmed, ms };
  }

  /** Waits until all is published, and nothing waits or moves. */
  private drained(published: number, looks: number): Promise<number> {
    return this.watch.until(
      ({ confirmed, waiting }) => confirmed === published && waiting === 0,
      looks,
    );
  }

  private readonly show = (snapshot: Snapshot): void => {
    const { messages } = this.before;
    const done = Math.max(processed(snapshot) - messages, 0);
    const rate = done / ((performance.now() - this.startedAt) / 1000);
    this.phases.update({
      done,
      total: messages === 0 ? this.firstTotal : this.options.sales,
      detail: `posted ${thousands(snapshot.posted)}, ${thousands(rate)}/s`,
    });
  };
}

/** Taken from the queue; some of these are still in work. */
const processed = ({ confirmed, waiting }: Snapshot): number => Math.max(confirmed - waiting, 0);
