import type { ChannelModel } from 'amqplib';
import type { Delivery } from './delivery.js';
import { attemptOf, deliveriesOf } from '../settle/headers.js';
import { QueueConsumer } from './queue-consumer.js';
import { admit, admitSuspect, decide, delayed } from '../settle/retry-policy.js';
import type { QueueParts, ServiceQueue } from './service-queue.js';
import { declareQueue, suspectQueue } from './topology.js';

/**
 * A queue whose messages are in work side by side. Beside it lies the queue of suspects, messages that
 * may have ended a process: of those, each process takes one at a time.
 */
export class ConcurrentQueue implements ServiceQueue {
  private readonly main: QueueConsumer;
  private readonly suspects: QueueConsumer;

  constructor(private readonly parts: QueueParts) {
    const { plan, topology, run } = parts;
    const declare = (channel: Parameters<typeof declareQueue>[0]): Promise<void> =>
      declareQueue(channel, plan, topology);
    this.main = new QueueConsumer({
      queue: plan.name,
      concurrency: plan.concurrency,
      declare,
      onDelivery: (delivery) => run(delivery, this.process(delivery)),
    });
    this.suspects = new QueueConsumer({
      queue: suspectQueue(plan.name),
      concurrency: 1,
      declare,
      onDelivery: (delivery) => run(delivery, this.processSuspect(delivery)),
    });
  }

  get notConsumingBecause(): string | undefined {
    return this.main.notConsumingBecause ?? this.suspects.notConsumingBecause;
  }

  async attach(connection: ChannelModel): Promise<void> {
    try {
      await this.main.attach(connection);
    } finally {
      // Also when the first one is refused: each tries again by itself.
      await this.suspects.attach(connection);
    }
  }

  async pause(): Promise<void> {
    await Promise.all([this.main.pause(), this.suspects.pause()]);
  }

  async resume(): Promise<void> {
    await Promise.all([this.main.resume(), this.suspects.resume()]);
  }

  async stop(): Promise<void> {
    await Promise.all([this.main.stop(), this.suspects.stop()]);
  }

  private async process(delivery: Delivery): Promise<void> {
    const mayRun = admit(deliveriesOf(delivery.message)) === 'run';
    if (mayRun || !(await this.parts.settlement.isolate(delivery))) {
      await this.run(delivery, false);
    }
  }

  private async processSuspect(delivery: Delivery): Promise<void> {
    const { settlement, crashLimit } = this.parts;
    if (admitSuspect(deliveriesOf(delivery.message), crashLimit) === 'run') {
      await this.run(delivery, true);
    } else {
      await settlement.quarantine(delivery);
    }
  }

  private async run(delivery: Delivery, isSuspect: boolean): Promise<void> {
    const { dispatcher, settlement, outage } = this.parts;
    const failed = await dispatcher.dispatch(delivery.message);
    if (failed === undefined) {
      settlement.acknowledge(delivery);
      return;
    }
    const attempt = attemptOf(delivery.message.properties.headers);
    const decision = decide(failed.failure, attempt, failed.schedule);
    if (failed.failure.kind === 'outage') {
      await outage.begin(failed.failure.error);
    }
    // The broker counts what is handed back. A suspect's count is its crashes, and an outage is none.
    const isCounted = isSuspect && decision.action === 'hand-back';
    await settlement.settle(
      delivery,
      failed,
      isCounted ? delayed(attempt, failed.schedule) : decision,
    );
  }
}
