import { setTimeout as sleep } from 'node:timers/promises';
import type { Socket } from 'node:net';

export type Direction = 'toServer' | 'toClient';

/**
 * What becomes of a chunk:
 * - `forward`: it goes on.
 * - `drop`: it disappears, the connection stays.
 * - `cut`: it disappears, and both ends see the connection reset.
 * - `cut-after`: the receiver gets it and then an orderly end; the sender sees the connection reset.
 */
export type Verdict = 'forward' | 'drop' | 'cut' | 'cut-after';

/** May take its time; what follows in that direction waits meanwhile. */
export type Interceptor = (
  chunk: Buffer,
  direction: Direction,
  connection: ProxiedConnection,
) => Verdict | Promise<Verdict>;

/** What the connections of one proxy have in common, read anew for every chunk. */
export interface Conditions {
  delayMs(): number;
  judge: Interceptor;
  /** Settles when chunks may pass in this direction. */
  passable(direction: Direction): Promise<void> | undefined;
}

interface Arrival {
  /** Undefined for the end of the stream. */
  chunk: Buffer | undefined;
  at: number;
}

/** One client's connection through a proxy. */
export class ProxiedConnection {
  constructor(
    private readonly client: Socket,
    private readonly server: Socket,
    private readonly conditions: Conditions,
  ) {
    this.pump('toServer', client, server);
    this.pump('toClient', server, client);
  }

  get isOpen(): boolean {
    return !this.client.destroyed && !this.server.destroyed;
  }

  /** Resets both sides. */
  cut(): void {
    reset(this.client);
    reset(this.server);
  }

  private pump(direction: Direction, source: Socket, target: Socket): void {
    const arrivals: Arrival[] = [];
    let forwarding = false;
    const arrive = (chunk?: Buffer): void => {
      arrivals.push({ chunk, at: performance.now() });
      if (forwarding) return;
      forwarding = true;
      void this.forwardAll(arrivals, direction, source, target).finally(() => (forwarding = false));
    };
    source.on('data', arrive);
    source.on('end', () => arrive());
    // A reset on one side is passed on to the other.
    source.on('error', () => this.cut());
  }

  private async forwardAll(
    arrivals: Arrival[],
    direction: Direction,
    source: Socket,
    target: Socket,
  ): Promise<void> {
    for (let next = arrivals.shift(); next !== undefined; next = arrivals.shift()) {
      const due = next.at + this.conditions.delayMs() - performance.now();
      if (due > 0) await sleep(due);
      for (
        let gate = this.conditions.passable(direction);
        gate;
        gate = this.conditions.passable(direction)
      ) {
        await gate;
      }
      if (isClosed(target)) return;
      if (next.chunk === undefined) {
        target.end();
        continue;
      }
      const verdict = await this.conditions.judge(next.chunk, direction, this);
      if (isClosed(target)) return;
      this.apply(verdict, next.chunk, source, target);
    }
  }

  private apply(verdict: Verdict, chunk: Buffer, source: Socket, target: Socket): void {
    switch (verdict) {
      case 'forward':
        target.write(chunk);
        return;
      case 'drop':
        return;
      case 'cut':
        this.cut();
        return;
      case 'cut-after':
        // A reset would let the receiver's kernel throw away what it has not read; an orderly end does not.
        reset(source);
        target.end(chunk);
        return;
    }
  }
}

function isClosed(socket: Socket): boolean {
  return socket.destroyed || socket.writableEnded;
}

/** A socket that has been ended already cannot be reset: Node then spins when it closes its handles. */
function reset(socket: Socket): void {
  if (socket.writableEnded) {
    socket.destroy();
  } else {
    socket.resetAndDestroy();
  }
}
