import { AmqpCalls, type AmqpMethod } from './amqp-wire.js';
import type { Direction, Interceptor, ProxiedConnection } from './proxied-connection.js';
import { takeTurns, type Turns } from './turns.js';

export interface CutAtMethodOptions extends Turns {
  /**
   * `before`: the receiver never gets it, nor what travels in the same chunk. `after`: it does, and then sees
   * the connection end. The sender sees a reset either way.
   */
  when: 'before' | 'after';
  /** `toServer` unless set. A publisher's confirm is a `basic.ack` that goes `toClient`. */
  direction?: Direction;
}

/**
 * Cuts a connection to RabbitMQ exactly at a method, its message included. For connections without TLS.
 *
 * @example An acknowledgement that does not arrive:
 * proxy.intercept(cutAtMethod('basic.ack', { when: 'before' }));
 */
export function cutAtMethod(method: AmqpMethod, options: CutAtMethodOptions): Interceptor {
  const { when, direction: watched = 'toServer' } = options;
  const streams = new WeakMap<ProxiedConnection, AmqpCalls>();
  const isItsTurn = takeTurns(options);
  return (chunk, direction, connection) => {
    if (direction !== watched) return 'forward';
    const calls = streams.get(connection) ?? new AmqpCalls();
    streams.set(connection, calls);
    const chosen = calls.push(chunk).filter((call) => call.method === method && isItsTurn());
    if (chosen.length === 0) return 'forward';
    return when === 'before' ? 'cut' : 'cut-after';
  };
}
