import { AmqpCalls, type AmqpCall, type AmqpMethod } from './amqp-wire.js';
import type { Direction } from './proxied-connection.js';
import type { Moment, Watch } from './watch.js';

type Matches = (call: AmqpCall) => boolean;

/** Every call of a method in one direction. */
export function before(method: AmqpMethod, watched: Direction): Moment {
  return () => {
    const calls = new AmqpCalls();
    return {
      sees: (chunk, direction) =>
        direction === watched
          ? calls.push(chunk).filter((call) => call.method === method).length
          : 0,
    };
  };
}

/** The confirms of the publishes that match. */
export function confirmOf(matches: Matches): Moment {
  return () => new ConfirmWatch(matches);
}

/** Acknowledgements that follow the confirm of a copy, on whichever connection that came. */
export function settlementOfCopy(): Moment {
  let copies = 0;
  return () => {
    const confirms = new ConfirmWatch(copyPublish);
    const acks = before('basic.ack', 'toServer')();
    return {
      sees(chunk, direction) {
        copies += confirms.sees(chunk, direction);
        const settled = Math.min(copies, acks.sees(chunk, direction));
        copies -= settled;
        return settled;
      },
    };
  };
}

/** A copy goes to one of the queues for retries or to the dead letters. */
export function copyPublish({ arguments: fields }: AmqpCall): boolean {
  // The exchange's name stands behind two reserved bytes, the routing key behind it; each begins with its length.
  const key = 3 + fields.readUInt8(2);
  const routingKey = fields.toString('utf8', key + 1, key + 1 + fields.readUInt8(key));
  return /\.(?:retry\.\d+|dead)$/.test(routingKey);
}

/** A confirm names its publish by a number, counted from before anybody watched; so it is known by its turn. */
class ConfirmWatch implements Watch {
  private readonly sent = new AmqpCalls();
  private readonly answers = new AmqpCalls();
  /** By channel, whether each publish that waits for its confirm matches. */
  private readonly waiting = new Map<number, boolean[]>();

  constructor(private readonly matches: Matches) {}

  sees(chunk: Buffer, direction: Direction): number {
    if (direction === 'toServer') {
      for (const call of this.sent.push(chunk)) {
        if (call.method === 'basic.publish') this.of(call).push(this.matches(call));
      }
      return 0;
    }
    let seen = 0;
    for (const call of this.answers.push(chunk)) {
      if (call.method !== 'basic.ack') continue;
      const multiple = (call.arguments.readUInt8(8) & 1) === 1;
      const confirmed = this.of(call).splice(0, multiple ? Infinity : 1);
      seen += confirmed.filter(Boolean).length;
    }
    return seen;
  }

  private of({ channel }: AmqpCall): boolean[] {
    const known = this.waiting.get(channel) ?? [];
    this.waiting.set(channel, known);
    return known;
  }
}
