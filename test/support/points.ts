import { setTimeout as sleep } from 'node:timers/promises';
import { before, confirmOf, copyPublish, settlementOfCopy } from './amqp-points.js';
import { answeredClaim, answeredCommit, claim, sentCommit } from './pg-points.js';
import type { Interceptor, ProxiedConnection, Verdict } from './proxied-connection.js';
import type { ServiceProcess } from './service-process.js';
import { takeTurns, type Turns } from './turns.js';
import type { Moment, Watch } from './watch.js';

/** What happens to a chunk at a point; told whether the point is one that its receiver still gets to know. */
export type Action = (arrives: boolean) => Verdict | Promise<Verdict>;

export interface PointOptions extends Turns {
  /**
   * Of commits, counts only those of transactions in which a statement matches: those that claim a message
   * unless set, so that background work stays out of it.
   */
  onlyAfter?: RegExp;
}

interface Definition {
  arrives: boolean;
  /** Of one interceptor, whose watches can know of each other. */
  moment: (options: PointOptions) => Moment;
}

/**
 * Where a message can be on its way, in the order in which it gets there. At one that `arrives` the receiver
 * still gets what has been sent; at the others it never does.
 */
const points = {
  /** Of a producer: the broker never gets the publish. */
  'before-publish': { arrives: false, moment: () => before('basic.publish', 'toServer') },
  /** Of a producer: the broker has the message, and its confirm is not seen. */
  published: { arrives: false, moment: () => confirmOf(() => true) },
  /** The consumer has been given the message. */
  delivered: { arrives: true, moment: () => before('basic.deliver', 'toClient') },
  /** PostgreSQL has answered the INSERT of the key. */
  claimed: { arrives: true, moment: () => answeredClaim },
  /** PostgreSQL never gets the COMMIT, and rolls back. */
  'before-commit': { arrives: false, moment: ({ onlyAfter = claim }) => sentCommit(onlyAfter) },
  /** PostgreSQL has done the COMMIT, and its answer is not seen. */
  committed: { arrives: false, moment: ({ onlyAfter = claim }) => answeredCommit(onlyAfter) },
  /** The broker has the retry or dead-letter copy of a message that failed, and its confirm is not seen. */
  'copy-published': { arrives: false, moment: () => confirmOf(copyPublish) },
  /** That confirm was seen, and the acknowledgement of the original never reaches the broker. */
  'copy-confirmed': { arrives: false, moment: () => settlementOfCopy() },
  /** The broker never gets the acknowledgement, of a copied message neither. */
  'before-ack': { arrives: false, moment: () => before('basic.ack', 'toServer') },
  /** The broker has got it. */
  acked: { arrives: true, moment: () => before('basic.ack', 'toServer') },
} as const satisfies Record<string, Definition>;

export type Point = keyof typeof points;

/**
 * Does something exactly when a message is at a point of its way, seen on the wire however the network splits
 * it. `claimed` and the commits are for the proxy of PostgreSQL, the others for RabbitMQ's; without TLS. A
 * confirm is found by the publish before it, so copies that are to be told apart go one at a time.
 *
 * @example A process that is killed when it has committed, and before the broker knows:
 * rabbitProxy.intercept(atPoint('before-ack', kill(service)));
 * @example A COMMIT whose outcome is unknown:
 * databaseProxy.intercept(atPoint('committed', cut));
 * @example The second copy waits for its confirm until the test opens the gate:
 * rabbitProxy.intercept(atPoint('copy-published', stall(gate.opened), { skip: 1 }));
 */
export function atPoint(point: Point, action: Action, options: PointOptions = {}): Interceptor {
  const { arrives, moment }: Definition = points[point];
  const newWatch = moment(options);
  const watches = new WeakMap<ProxiedConnection, Watch>();
  const isItsTurn = takeTurns(options);
  return (chunk, direction, connection) => {
    const watch = watches.get(connection) ?? newWatch();
    watches.set(connection, watch);
    const seen = Array.from({ length: watch.sees(chunk, direction) }, isItsTurn);
    return seen.includes(true) ? action(arrives) : 'forward';
  };
}

/**
 * Cuts the connection there.
 *
 * @example proxy.intercept(atPoint('acked', cut));
 */
export const cut: Action = (arrives) => (arrives ? 'cut-after' : 'cut');

/**
 * Kills the service there with SIGKILL, as the OOM killer does.
 *
 * @example databaseProxy.intercept(atPoint('claimed', kill(service)));
 */
export const kill =
  (service: Pick<ServiceProcess, 'signal'>): Action =>
  (arrives) => {
    // What arrives is written first; what does not is gone with the connection.
    setImmediate(() => service.signal('SIGKILL'));
    return cut(arrives);
  };

/**
 * Holds up what is there, and all that follows it in that direction of the connection: for so many milliseconds,
 * or until a promise settles.
 *
 * @example rabbitProxy.intercept(atPoint('before-ack', stall(500), { times: 10 }));
 */
export const stall =
  (until: number | Promise<unknown>): Action =>
  async (): Promise<Verdict> => {
    await (typeof until === 'number' ? sleep(until) : until);
    return 'forward';
  };
