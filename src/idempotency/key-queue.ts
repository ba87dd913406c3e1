/**
 * Lets one task at a time run for a key. Copies of one message that reach this process together wait
 * here, in memory, instead of each holding a connection to wait for the same row.
 */
export class KeyQueue {
  private readonly tails = new Map<string, Promise<unknown>>();

  /** Runs `task` when those that came before it with the same key have ended, however they ended. */
  run<T>(key: string, task: () => Promise<T>): Promise<T> {
    const before = this.tails.get(key);
    const result = before === undefined ? task() : before.then(task);
    const end = (): void => {
      if (this.tails.get(key) === tail) {
        this.tails.delete(key);
      }
    };
    const tail = result.then(end, end);
    this.tails.set(key, tail);
    return result;
  }
}
