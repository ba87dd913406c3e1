import { setTimeout as sleep } from 'node:timers/promises';
import type { ChannelModel } from 'amqplib';
import { crashesOf, type AttemptNotes, type Progress } from './attempt-notes.js';
import type { Delivery } from './delivery.js';
import type { Failed } from '../settle/failure.js';
import { deliveriesOf } from '../settle/headers.js';
import { QueueConsumer } from './queue-consumer.js';
import { decide, delayed } from '../settle/retry-policy.js';
import type { QueueParts, ServiceQueue } from './service-queue.js';
import { declareQueue } from './topology.js';

/** Well below half an hour, after which the broker closes the channel of a message that is not settled. */
const LONGEST_HOLD_MS = 10 * 60_000;

/**
 * A queue whose messages are in work one at a time, over all replicas: of its consumers the broker
 * serves a single one, with a single message. A message that failed is not put anywhere, it is held
 * until it runs again, so that no other overtakes it. The same during an outage.
 */
export class OrderedQueue implements ServiceQueue {
  private readonly consumer: QueueConsumer;
  private readonly stopping = new AbortController();
  private holding = 0;

  constructor(
    private readonly parts: QueueParts,
    private readonly notes: AttemptNotes,
  ) {
    const { plan, topology, run } = parts;
    this.consumer = new QueueConsumer({
      queue: plan.name,
      concurrency: 1,
      declare: (channel) => declareQueue(channel, plan, topology),
      onDelivery: (delivery) => run(delivery, this.process(delivery)),
    });
  }

  get notConsumingBecause(): string | undefined {
    return this.consumer.notConsumingBecause;
  }

  attach(connection: ChannelModel): Promise<void> {
    return this.consumer.attach(connection);
  }

  /** Goes on consuming: without it, another replica would go on with the next message. */
  pause(): Promise<void> {
    return Promise.resolve();
  }

  resume(): Promise<void> {
    return Promise.resolve();
  }

  /**
   * Cancelling lets another replica go on. As long as a message is held that would be too early: the
   * end of the connection gives back message and place together.
   */
  async stop(): Promise<void> {
    this.stopping.abort();
    if (this.holding === 0) {
      await this.consumer.stop();
    }
  }

  private async process(delivery: Delivery): Promise<void> {
    if (this.stopping.signal.aborted) {
      return;
    }
    this.holding++;
    try {
      await this.hold(delivery, Date.now() + LONGEST_HOLD_MS);
    } finally {
      this.holding--;
    }
  }

  /** Runs the message until it is settled. */
  private async hold(delivery: Delivery, until: number): Promise<void> {
    const { dispatcher, settlement, crashLimit, outage } = this.parts;
    let progress = await this.notes.read(delivery);
    if (crashesOf(delivery.message, progress) >= crashLimit) {
      await this.letGo();
      await settlement.quarantine(delivery);
      return;
    }
    while (await this.mayRun(delivery, progress, until)) {
      const failed = await dispatcher.dispatch(delivery.message);
      if (failed === undefined) {
        await this.letGo();
        settlement.acknowledge(delivery);
        return;
      }
      if (failed.failure.kind === 'outage') {
        await outage.begin(failed.failure.error);
        continue;
      }
      const next = await this.afterFailure(delivery, failed, progress);
      if (next === undefined) {
        return;
      }
      progress = next;
    }
  }

  /** How the message goes on, or undefined when it is settled. */
  private async afterFailure(
    delivery: Delivery,
    failed: Failed,
    progress: Progress,
  ): Promise<Progress | undefined> {
    const { settlement } = this.parts;
    const { attempt } = progress;
    const decision = decide(failed.failure, attempt, failed.schedule);
    if (decision.action === 'dead-letter' || decision.action === 'move') {
      await this.letGo();
      await settlement.settle(
        delivery,
        { ...failed, firstFailedAt: progress.firstFailedAt },
        decision,
      );
      return undefined;
    }
    const retry = decision.action === 'retry' ? decision : delayed(attempt, failed.schedule);
    const next = {
      ...progress,
      attempt: retry.attempt,
      notBefore: Date.now() + retry.delayMs,
      firstFailedAt: progress.firstFailedAt ?? new Date().toISOString(),
    };
    settlement.reportRetry(delivery.message, failed.failure, retry.attempt, retry.delayMs);
    await this.notes.write(delivery, next);
    return next;
  }

  /**
   * Waits until the message may run. False when it comes again instead: the service stops, the channel
   * is gone, or it was held for so long that it is handed back, to be delivered at once.
   */
  private async mayRun(delivery: Delivery, progress: Progress, until: number): Promise<boolean> {
    const { outage, settlement } = this.parts;
    const stopped = this.stopping.signal;
    await this.wait(delivery, Math.min(progress.notBefore, until));
    if (outage.because !== undefined) {
      await Promise.race([outage.over, this.wait(delivery, until)]);
    }
    if (!delivery.open) {
      return false;
    }
    const isDue = Date.now() >= progress.notBefore && outage.because === undefined;
    if (isDue && !stopped.aborted) {
      return true;
    }
    const handedBack = deliveriesOf(delivery.message) + 1;
    await this.notes.write(delivery, { ...progress, handedBack });
    if (!stopped.aborted) {
      settlement.handBack(delivery, undefined);
    }
    return false;
  }

  private async wait(delivery: Delivery, until: number): Promise<void> {
    const ms = until - Date.now();
    if (ms > 0) {
      const signal = AbortSignal.any([this.stopping.signal, delivery.on.closed]);
      await sleep(ms, undefined, { signal, ref: false }).catch(() => undefined);
    }
  }

  /** Before the last word on a message: when the service stops, another replica takes the next one. */
  private async letGo(): Promise<void> {
    if (this.stopping.signal.aborted) {
      await this.consumer.stop();
    }
  }
}
