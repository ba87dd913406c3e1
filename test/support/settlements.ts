import { AmqpCalls, type AmqpCall } from './amqp-wire.js';
import type { ProxiedConnection } from './proxied-connection.js';
import type { TcpProxy } from './tcp-proxy.js';

/**
 * What consumers behind a proxy were given and what they answered, exact and as of now: counted from the bytes
 * themselves, because no question to the broker tells it at once. Counts messages, not protocol calls.
 */
export interface Settlements {
  readonly delivered: number;
  readonly acked: number;
  /** Handed back or dead-lettered by `nack`. */
  readonly nacked: number;
  /** Handed back or dead-lettered by `reject`. */
  readonly rejected: number;
  /** Delivered on a connection that is still open, and not settled. */
  readonly unsettled: number;
}

/**
 * Watches the connections that consumers make through the proxy from now on.
 *
 * @example
 * const settlements = watchSettlements(rabbitProxy);
 * await holds(() => expect(settlements.acked).toBe(0), 300);
 */
export function watchSettlements(proxy: TcpProxy): Settlements {
  const ledger = new SettlementLedger();
  proxy.intercept((chunk, direction, connection) => {
    const watched = ledger.of(connection);
    if (direction === 'toClient') watched.delivered(chunk);
    else watched.answered(chunk);
    return 'forward';
  });
  return ledger;
}

class SettlementLedger implements Settlements {
  private readonly connections = new Map<ProxiedConnection, ConnectionLedger>();

  of(connection: ProxiedConnection): ConnectionLedger {
    const known = this.connections.get(connection) ?? new ConnectionLedger();
    this.connections.set(connection, known);
    return known;
  }

  get delivered(): number {
    return this.sum((ledger) => ledger.counts.delivered);
  }

  get acked(): number {
    return this.sum((ledger) => ledger.counts.acked);
  }

  get nacked(): number {
    return this.sum((ledger) => ledger.counts.nacked);
  }

  get rejected(): number {
    return this.sum((ledger) => ledger.counts.rejected);
  }

  get unsettled(): number {
    return this.sum((ledger, connection) => (connection.isOpen ? ledger.unsettled : 0));
  }

  private sum(count: (ledger: ConnectionLedger, connection: ProxiedConnection) => number): number {
    let total = 0;
    for (const [connection, ledger] of this.connections) total += count(ledger, connection);
    return total;
  }
}

class ConnectionLedger {
  readonly counts = { delivered: 0, acked: 0, nacked: 0, rejected: 0 };
  private readonly toClient = new AmqpCalls();
  private readonly toServer = new AmqpCalls();
  /** Delivery tags by channel. */
  private readonly open = new Map<number, Set<bigint>>();

  get unsettled(): number {
    return [...this.open.values()].reduce((total, tags) => total + tags.size, 0);
  }

  delivered(chunk: Buffer): void {
    for (const call of this.toClient.push(chunk)) {
      if (call.method === 'channel.close') this.open.delete(call.channel);
      if (call.method !== 'basic.deliver') continue;
      this.counts.delivered += 1;
      // The tag stands behind the consumer's name, which begins with its length.
      this.tags(call.channel).add(call.arguments.readBigUInt64BE(1 + call.arguments.readUInt8(0)));
    }
  }

  answered(chunk: Buffer): void {
    for (const call of this.toServer.push(chunk)) {
      if (call.method === 'channel.close') this.open.delete(call.channel);
      if (call.method === 'basic.ack') this.counts.acked += this.settle(call);
      if (call.method === 'basic.nack') this.counts.nacked += this.settle(call);
      if (call.method === 'basic.reject') this.counts.rejected += this.settle(call, false);
    }
  }

  /** How many messages a call settles: one, or with `multiple` all up to its tag; tag 0 means every one. */
  private settle(call: AmqpCall, canBeMultiple = true): number {
    const tags = this.tags(call.channel);
    const tag = call.arguments.readBigUInt64BE(0);
    const multiple = canBeMultiple && (call.arguments.readUInt8(8) & 1) === 1;
    const settled = multiple ? [...tags].filter((one) => tag === 0n || one <= tag) : [tag];
    return settled.filter((one) => tags.delete(one)).length;
  }

  private tags(channel: number): Set<bigint> {
    const known = this.open.get(channel) ?? new Set();
    this.open.set(channel, known);
    return known;
  }
}
