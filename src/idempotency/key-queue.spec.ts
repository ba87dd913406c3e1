import { setImmediate as turn } from 'node:timers/promises';
import { KeyQueue } from './key-queue.js';

/** A task that ends when the test says so. */
function controlled() {
  const { promise, resolve, reject } = deferred();
  let started = false;
  const task = (): Promise<string> => {
    started = true;
    return promise;
  };
  return { task, resolve, reject, isRunning: () => started };
}

function deferred() {
  let resolve!: (value: string) => void;
  let reject!: (error: Error) => void;
  const promise = new Promise<string>((onResolve, onReject) => {
    resolve = onResolve;
    reject = onReject;
  });
  return { promise, resolve, reject };
}

describe('KeyQueue', () => {
  it('starts the first task for a key at once', () => {
    const first = controlled();
    void new KeyQueue().run('k', first.task);
    expect(first.isRunning()).toBe(true);
  });

  it('runs one task at a time for a key, in the order they came', async () => {
    const queue = new KeyQueue();
    let running = 0;
    let most = 0;
    const order: number[] = [];
    await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        queue.run('k', async () => {
          most = Math.max(most, ++running);
          await turn();
          order.push(index);
          running--;
        }),
      ),
    );
    expect(most).toBe(1);
    expect(order).toEqual(order.toSorted((a, b) => a - b));
    expect(order).toHaveLength(20);
  });

  it('lets different keys run together', () => {
    const queue = new KeyQueue();
    const tasks = [controlled(), controlled()];
    void queue.run('a', tasks[0]!.task);
    void queue.run('b', tasks[1]!.task);
    expect(tasks.map((task) => task.isRunning())).toEqual([true, true]);
  });

  it('gives each caller the outcome of its own task, and goes on after a failure', async () => {
    const queue = new KeyQueue();
    const [first, second] = [controlled(), controlled()];
    const results = Promise.allSettled([queue.run('k', first.task), queue.run('k', second.task)]);

    await turn();
    expect(second.isRunning()).toBe(false);
    first.reject(new Error('first fails'));
    await turn();
    expect(second.isRunning()).toBe(true);
    second.resolve('second');

    expect(await results).toEqual([
      { status: 'rejected', reason: new Error('first fails') },
      { status: 'fulfilled', value: 'second' },
    ]);
  });

  it('forgets a key when its last task has ended', async () => {
    const queue = new KeyQueue();
    await Promise.allSettled([
      queue.run('a', () => Promise.resolve()),
      queue.run('a', () => Promise.reject(new Error('x'))),
      queue.run('b', () => Promise.resolve()),
    ]);
    await turn();
    expect(queue['tails'].size).toBe(0);
  });

  it('still waits for a task that came when the one before it had ended', async () => {
    const queue = new KeyQueue();
    const [first, second, third] = [controlled(), controlled(), controlled()];
    void queue.run('k', first.task);
    void queue.run('k', second.task);
    first.resolve('');
    await turn();
    void queue.run('k', third.task);
    await turn();
    expect([second.isRunning(), third.isRunning()]).toEqual([true, false]);
  });
});
