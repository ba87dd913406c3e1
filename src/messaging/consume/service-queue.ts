import type { ChannelModel } from 'amqplib';
import type { Delivery } from './delivery.js';
import type { Dispatcher } from '../dispatch/dispatcher.js';
import type { Outage, Pausable } from './outage.js';
import type { QueuePlan } from './queue-plan.js';
import type { Settlement } from '../settle/settlement.js';
import type { Topology } from './topology.js';

/** One queue of the service, with all that consumes it in this process. */
export interface ServiceQueue extends Pausable {
  /** Why no messages are being delivered, or undefined when they are. */
  readonly notConsumingBecause: string | undefined;
  /** Consumes on a new connection. @throws what the broker answered */
  attach(connection: ChannelModel): Promise<void>;
  /** Takes no new messages, for good. */
  stop(): Promise<void>;
}

/** What a queue works with. */
export interface QueueParts {
  plan: QueuePlan;
  topology: Topology;
  crashLimit: number;
  dispatcher: Dispatcher;
  settlement: Settlement;
  outage: Outage;
  /** Watches over the processing of a message: a stop waits for it, and none that fails is left behind. */
  run: (delivery: Delivery, processing: Promise<void>) => void;
}
