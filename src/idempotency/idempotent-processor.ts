import { Injectable, Logger } from '@nestjs/common';
import { DataSource } from 'typeorm';
import {
  CommitOutcomeUnknownError,
  inTransaction,
  isDatabaseOutage,
  isSerializationFailure,
} from '../database/index.js';
import { handlerSeconds, outcomes, type Outcome } from '../observability/index.js';
import { Evidence } from './evidence/evidence.js';
import { InvalidKeyError, KeyBusyError, KeyReuseError } from './errors.js';
import { fingerprint } from './fingerprint.js';
import type { Handler } from './handler.js';
import { businessKey } from './key.js';
import { KeyQueue } from './key-queue.js';
import { claim, storeReply, type Claim } from './processed-message.store.js';

/** Runs of one delivery, when each ends in a serialization failure or a deadlock. */
export const SERIALIZATION_RUNS = 4;

interface Result {
  reply: unknown;
  /** Of the key, when the message is a duplicate. */
  ageSeconds: number | undefined;
}

/** The heart of the template: one message, one key, one transaction. */
@Injectable()
export class IdempotentProcessor {
  private readonly logger = new Logger(IdempotentProcessor.name);
  private readonly queue = new KeyQueue();

  constructor(
    private readonly dataSource: DataSource,
    private readonly evidence: Evidence,
  ) {}

  /**
   * Runs the handler's work unless its key was processed before.
   *
   * @param work the handler, with its pipes; runs inside the transaction, and again after a
   *   serialization failure
   * @returns the handler's reply, or the stored one for a repeat
   * @throws RejectedMessageError when the message is at fault, KeyBusyError, what the handler threw,
   *   or one of the database folder's errors; in each case nothing of this delivery is stored, except
   *   possibly under CommitOutcomeUnknownError
   */
  async process(
    handler: Handler,
    payload: unknown,
    work: () => Promise<unknown>,
  ): Promise<unknown> {
    const { consumer } = handler;
    const started = performance.now();
    try {
      const intent: Claim = {
        consumer,
        key: businessKey(consumer, handler.keyFrom, payload),
        fingerprint: fingerprint(consumer, handler.fingerprint, payload),
        retentionMs: handler.retentionMs,
        limits: handler.transaction,
      };
      const { reply, ageSeconds } = await this.queue.run(`${consumer}\0${intent.key}`, () =>
        this.untilSerialized(() => this.inOneTransaction(handler, intent, work)),
      );
      if (ageSeconds === undefined) {
        handlerSeconds.observe({ consumer }, (performance.now() - started) / 1000);
        outcomes.inc({ consumer, outcome: 'processed' });
        this.evidence.processed(consumer);
      } else {
        this.logger.debug(`${consumer}: ${intent.key} is a duplicate.`);
        outcomes.inc({ consumer, outcome: 'duplicate' });
        this.evidence.duplicate(consumer, ageSeconds);
      }
      return reply;
    } catch (error) {
      this.failed(consumer, outcomeOf(error));
      throw error;
    }
  }

  private failed(consumer: string, outcome: Outcome): void {
    outcomes.inc({ consumer, outcome });
    if (outcome === 'key_reuse') {
      this.evidence.keyReuse(consumer);
    }
  }

  private inOneTransaction(
    handler: Handler,
    intent: Claim,
    work: () => Promise<unknown>,
  ): Promise<Result> {
    return inTransaction(this.dataSource, handler.transaction, async (transaction) => {
      const processed = await claim(transaction, intent);
      if (processed !== undefined) {
        if (!sameIntent(processed.fingerprint, intent.fingerprint)) {
          throw new KeyReuseError(intent.consumer, intent.key, processed.processed_at);
        }
        return { reply: parseReply(processed.reply), ageSeconds: processed.age_seconds };
      }
      const reply = await work();
      if (handler.storesReply && reply !== undefined) {
        await storeReply(transaction, intent, reply);
      }
      return { reply, ageSeconds: undefined };
    });
  }

  private async untilSerialized(run: () => Promise<Result>): Promise<Result> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await run();
      } catch (error) {
        if (attempt >= SERIALIZATION_RUNS || !isSerializationFailure(error)) {
          throw error;
        }
      }
    }
  }
}

/** A row without a fingerprint, or a handler without one, has nothing to compare. */
function sameIntent(stored: Buffer | null, current: Buffer | null): boolean {
  return stored === null || current === null || stored.equals(current);
}

function parseReply(reply: string | null): unknown {
  return reply === null ? undefined : (JSON.parse(reply) as unknown);
}

function outcomeOf(error: unknown): Outcome {
  if (error instanceof KeyReuseError) return 'key_reuse';
  if (error instanceof InvalidKeyError) return 'invalid_key';
  if (error instanceof KeyBusyError) return 'key_busy';
  if (error instanceof CommitOutcomeUnknownError) return 'commit_unknown';
  return isDatabaseOutage(error) ? 'database_unavailable' : 'failed';
}
