import { Logger } from '@nestjs/common';
import type { ConsumeMessage } from 'amqplib';
import { redactUrls, settlements, type Settlement as Settled } from '../../observability/index.js';
import type { Copier } from './copier.js';
import { isCopyable } from './copyable.js';
import type { DelayQueues } from './delay-queues.js';
import type { Delivery } from '../consume/delivery.js';
import { messageOf, nameOf, stackOf } from '../error-text.js';
import { CrashedConsumerError } from '../errors.js';
import type { Failed } from './failure.js';
import { attemptOf, deliveriesOf, failureHeaders, originHeaders } from './headers.js';
import type { Decision, RetryDecision } from './retry-policy.js';
import { deadLetterQueue, retryQueue, suspectQueue } from '../consume/topology.js';

export interface SettlementOptions {
  /** The queue whose messages are settled. */
  queue: string;
  /** The service's queue, after which the dead-letter queue is named. */
  service: string;
  delays: DelayQueues;
  onDeadLetter: ((consumer: string) => void) | undefined;
}

/** Tells the broker what became of a message. Nothing else does. */
export class Settlement {
  private readonly logger = new Logger(Settlement.name);

  constructor(
    private readonly options: SettlementOptions,
    private readonly copier: Copier,
  ) {}

  acknowledge(delivery: Delivery): void {
    delivery.acknowledge();
    count('acknowledged', '');
  }

  /**
   * Settles a message that failed. Its copy is confirmed before the original is acknowledged, so that a
   * crash between the two leaves two copies, never none.
   */
  async settle(delivery: Delivery, failed: Failed, decision: Decision): Promise<void> {
    if (decision.action === 'hand-back') {
      this.handBack(delivery, failed.failure.error);
    } else if (decision.action === 'move') {
      await this.move(delivery, failed, decision.queue);
    } else if (decision.action === 'dead-letter') {
      await this.deadLetter(delivery, failed, decision.reason, decision.attempt);
    } else if (isCopyable(delivery.message.properties)) {
      await this.delay(delivery, failed, decision);
    } else {
      await this.deadLetter(delivery, failed, 'properties-not-copyable', decision.attempt);
    }
  }

  /** @param error what every message meets at the moment */
  handBack(delivery: Delivery, error: unknown): void {
    delivery.handBack();
    count('handed_back', nameOf(error));
  }

  /** Moves a message to where it runs alone. False when it cannot be moved. */
  async isolate(delivery: Delivery): Promise<boolean> {
    const { message } = delivery;
    if (!isCopyable(message.properties)) {
      return false;
    }
    await this.copier.store(delivery, suspectQueue(this.options.queue), originHeaders(message));
    delivery.acknowledge();
    count('isolated', '');
    this.logger.warn(
      `Delivered ${deliveriesOf(message)} times without an end, runs alone now: ${this.describe(message)}.`,
    );
    return true;
  }

  private async move(delivery: Delivery, failed: Failed, queue: string): Promise<void> {
    const { message } = delivery;
    if (!isCopyable(message.properties)) {
      await this.deadLetter(delivery, failed, 'no-handler', attemptOf(message.properties.headers));
      return;
    }
    await this.copier.store(delivery, queue, originHeaders(message));
    delivery.acknowledge();
    count('moved', queue);
  }

  /** Gives up a message that ends the process, or seems to. */
  async quarantine(delivery: Delivery): Promise<void> {
    const { message } = delivery;
    const error = new CrashedConsumerError(deliveriesOf(message) + 1);
    const failure = { kind: 'permanent', reason: 'process-crashed', error } as const;
    const failed = { failure, consumer: this.options.queue };
    await this.deadLetter(
      delivery,
      failed,
      failure.reason,
      attemptOf(message.properties.headers) + 1,
    );
  }

  private async delay(
    delivery: Delivery,
    { failure, consumer }: Failed,
    decision: RetryDecision,
  ): Promise<void> {
    const { queue, delays } = this.options;
    const { error } = failure;
    const { attempt, delayMs } = decision;
    const random = Math.random();
    const chosenMs =
      decision.atLeast === true ? delays.atLeast(delayMs, random) : delays.near(delayMs, random);
    const headers = failureHeaders(delivery.message, { attempt, error, queue, consumer });
    await this.copier.store(delivery, retryQueue(queue, chosenMs), headers);
    delivery.acknowledge();
    this.reportRetry(delivery.message, failure, attempt, chosenMs);
  }

  private async deadLetter(
    delivery: Delivery,
    { failure: { error }, consumer, firstFailedAt }: Omit<Failed, 'schedule'>,
    reason: string,
    attempt: number,
  ): Promise<void> {
    const { queue, service } = this.options;
    if (isCopyable(delivery.message.properties)) {
      const note = { attempt, error, queue, consumer, firstFailedAt, reason };
      await this.copier.store(
        delivery,
        deadLetterQueue(service),
        failureHeaders(delivery.message, note),
      );
      delivery.acknowledge();
    } else {
      // No copy could tell its attempt or its reason. The broker moves the message itself, unchanged.
      delivery.deadLetter();
    }
    count('dead_lettered', reason);
    this.options.onDeadLetter?.(consumer);
    this.logger.error(
      `Dead-lettered ${this.describe(delivery.message)}, ${reason}. ${explain(error)}`,
      stackOf(error),
    );
  }

  /** Says that a message is going to be tried again. */
  reportRetry(
    message: ConsumeMessage,
    { kind, error }: Failed['failure'],
    attempt: number,
    delayMs: number,
  ): void {
    const isAttempt = kind === 'failed';
    count(isAttempt ? 'retried' : 'delayed', nameOf(error));
    const happened = isAttempt ? `Attempt ${attempt} failed` : 'Not an attempt';
    this.logger.warn(
      `${happened}, again in ${delayMs} ms: ${this.describe(message)}. ${explain(error)}`,
    );
  }

  private describe({ fields, properties }: ConsumeMessage): string {
    const id = (properties.messageId as string | undefined) ?? 'without an id';
    return redactUrls(`message ${id} (${fields.routingKey})`);
  }
}

const explain = (error: unknown): string => `${nameOf(error)}: ${messageOf(error)}`;

function count(settlement: Settled, reason: string): void {
  settlements.inc({ settlement, reason });
}
