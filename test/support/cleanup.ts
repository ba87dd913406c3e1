type Release = () => unknown;

/** What a test opened and has to give back, in the order in which it was opened. */
export interface Cleanup {
  /** Registers a resource of this folder; returns it. */
  use<T extends AsyncDisposable>(resource: T): T;
  /** Registers anything else. */
  defer(release: Release): void;
}

/**
 * Releases what was registered, last opened first, after all tests of the describe block (or file) in
 * which it is called, or after each of them. A release that fails does not keep the others from running.
 *
 * @example
 * const cleanup = useCleanup();
 * let db: TestDatabase;
 * beforeAll(async () => {
 *   db = cleanup.use(await createTestDatabase());
 * });
 */
export function useCleanup(after: 'all' | 'each' = 'all'): Cleanup {
  const releases: Release[] = [];
  const hook = after === 'all' ? afterAll : afterEach;
  hook(async () => {
    const failures: unknown[] = [];
    for (let release = releases.pop(); release !== undefined; release = releases.pop()) {
      try {
        await release();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length === 1) throw failures[0];
    if (failures.length > 1)
      throw new AggregateError(failures, 'Several resources failed to close.');
  });
  return {
    use(resource) {
      releases.push(() => resource[Symbol.asyncDispose]());
      return resource;
    },
    defer(release) {
      releases.push(release);
    },
  };
}
