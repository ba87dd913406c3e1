type Release = () => unknown;

/** What a run has opened, given back in reverse order, also when it is interrupted while opening. */
export class Releases {
  private readonly releases: Promise<Release>[] = [];
  private closed = false;

  /** `opening` has to clean up after itself when it fails. */
  open<T>(opening: () => Promise<T>, release: (resource: T) => unknown): Promise<T> {
    if (this.closed) return Promise.reject(new Error('Everything has been given back already.'));
    const opened = opening();
    this.releases.push(
      opened.then(
        (resource) => () => release(resource),
        () => () => undefined,
      ),
    );
    return opened;
  }

  /** Waits for what is just being opened. A release that fails does not keep the others from running. */
  async close(): Promise<unknown[]> {
    this.closed = true;
    const failures: unknown[] = [];
    for (let next = this.releases.pop(); next !== undefined; next = this.releases.pop()) {
      try {
        await (
          await next
        )();
      } catch (error) {
        failures.push(error);
      }
    }
    return failures;
  }
}
