import { setTimeout as sleep } from 'node:timers/promises';
import { Logger } from '@nestjs/common';
import type { ConsumeMessage } from 'amqplib';
import { redactUrls, settlements, type Settlement as Settled } from '../observability/index.js';
import type { ConfirmedPublisher } from './confirmed-publisher.js';
import { isCopyable } from './copyable.js';
import type { Delivery } from './delivery.js';
import { messageOf, nameOf, stackOf } from './error-text.js';
import { UnroutableMessageError } from './errors.js';
import type { Failure } from './failure.js';
import { attemptOf, copyProperties, deliveriesOf, failureHeaders } from './headers.js';
import type { Outage } from './outage.js';
import { decide, type CopyDecision } from './retry-policy.js';
import { DEFAULT_EXCHANGE, deadLetterQueue, retryQueue } from './topology.js';

const FIRST_REPUBLISH_MS = 250;
const LONGEST_REPUBLISH_MS = 15_000;

export interface SettlementOptions {
  queue: string;
  retryDelaysMs: readonly number[];
}

/** Tells the broker what became of a message. Nothing else does. */
export class Settlement {
  private readonly logger = new Logger(Settlement.name);

  constructor(
    private readonly options: SettlementOptions,
    private readonly publisher: ConfirmedPublisher,
    private readonly outage: Outage,
    /** Declares the queues again. */
    private readonly redeclare: () => Promise<void>,
  ) {}

  acknowledge(delivery: Delivery): void {
    delivery.acknowledge();
    count('acknowledged', '');
  }

  /**
   * Settles a message that failed. Its copy is confirmed before the original is acknowledged, so that a
   * crash between the two leaves two copies, never none.
   */
  async fail(delivery: Delivery, failure: Failure): Promise<void> {
    const { properties } = delivery.message;
    const attempt = attemptOf(properties.headers);
    const deliveries = deliveriesOf(properties.headers);
    const decision = decide(failure, attempt, this.options.retryDelaysMs, deliveries);
    if (failure.kind === 'outage') {
      await this.outage.begin(failure.error);
    }
    if (decision.action === 'hand-back') {
      delivery.handBack();
      count('handed_back', nameOf(failure.error));
    } else if (isCopyable(properties)) {
      await this.copyUntilConfirmed(delivery, failure.error, decision);
      delivery.acknowledge();
      this.report(delivery.message, failure, decision);
    } else {
      // No copy could tell its attempt or its reason. The broker moves the message itself, unchanged.
      delivery.deadLetter();
      const reason = 'properties-not-copyable';
      this.report(delivery.message, failure, { action: 'dead-letter', reason, attempt });
    }
  }

  /**
   * While the broker takes no messages the original stays unacknowledged: it holds its place in the
   * prefetch window, so that nothing grows, and comes back when this process dies.
   */
  private async copyUntilConfirmed(
    delivery: Delivery,
    error: unknown,
    decision: CopyDecision,
  ): Promise<void> {
    for (let waitMs = FIRST_REPUBLISH_MS; ; waitMs = Math.min(waitMs * 2, LONGEST_REPUBLISH_MS)) {
      try {
        await this.copy(delivery.message, error, decision);
        return;
      } catch (refusal) {
        if (!delivery.open) {
          throw refusal;
        }
        this.logger.error(`No copy of a failed message could be stored: ${messageOf(refusal)}`);
        await sleep(waitMs, undefined, { ref: false });
        await this.restoreQueues(refusal);
      }
    }
  }

  /** An operator who deletes a queue for copies must not stop this consumer message by message. */
  private async restoreQueues(refusal: unknown): Promise<void> {
    if (refusal instanceof UnroutableMessageError) {
      await this.redeclare().catch((error: unknown) => {
        this.logger.error(`The queues could not be declared again: ${messageOf(error)}`);
      });
    }
  }

  private async copy(
    message: ConsumeMessage,
    error: unknown,
    decision: CopyDecision,
  ): Promise<void> {
    const { queue } = this.options;
    const target =
      decision.action === 'retry' ? retryQueue(queue, decision.delayMs) : deadLetterQueue(queue);
    const reason = decision.action === 'dead-letter' ? decision.reason : undefined;
    await this.publisher.publish(
      DEFAULT_EXCHANGE,
      target,
      message.content,
      copyProperties(message.properties, failureHeaders(message, decision.attempt, error, reason)),
    );
  }

  private report(message: ConsumeMessage, failure: Failure, decision: CopyDecision): void {
    const id = (message.properties.messageId as string | undefined) ?? 'without an id';
    const what = redactUrls(`message ${id} (${message.fields.routingKey})`);
    const why = `${nameOf(failure.error)}: ${messageOf(failure.error)}`;
    if (decision.action === 'dead-letter') {
      count('dead_lettered', decision.reason);
      this.logger.error(
        `Dead-lettered ${what}, ${decision.reason}. ${why}`,
        stackOf(failure.error),
      );
      return;
    }
    const isAttempt = failure.kind === 'failed';
    count(isAttempt ? 'retried' : 'delayed', nameOf(failure.error));
    const happened = isAttempt ? `Attempt ${decision.attempt} failed` : 'Not an attempt';
    this.logger.warn(`${happened}, again in ${decision.delayMs} ms: ${what}. ${why}`);
  }
}

function count(settlement: Settled, reason: string): void {
  settlements.inc({ settlement, reason });
}
