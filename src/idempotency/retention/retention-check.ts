import { Inject, Injectable } from '@nestjs/common';
import { durationText } from '../../duration/index.js';
import type { Handler } from '../handler.js';
import { HandlerExplorer, type ExploredHandler } from '../handler-explorer.js';
import { HandlerRegistry } from '../handler-registry.js';
import { IDEMPOTENCY_OPTIONS, type IdempotencyOptions } from '../idempotency.options.js';
import { SERIALIZATION_RUNS } from '../idempotent-processor.js';
import { retentionRule, type RetentionTerms } from './retention-rule.js';

const DAY_MS = 86_400_000;

/**
 * Of a handler that has no timeout. RabbitMQ closes the channel of a message that is not settled within half an
 * hour, unless its administrator has said otherwise.
 */
const UNTIMED_RUN_MS = 30 * 60_000;

/** Checks that each handler keeps its keys for longer than a repeat of their messages can take. */
@Injectable()
export class RetentionCheck {
  constructor(
    private readonly explorer: HandlerExplorer,
    private readonly registry: HandlerRegistry,
    @Inject(IDEMPOTENCY_OPTIONS) private readonly options: IdempotencyOptions,
  ) {}

  /** The terms of a handler's retention. The transport has to know every handler by now. */
  termsOf(handler: Handler): RetentionTerms {
    return {
      retentionMs: handler.retentionMs,
      redeliveryMs: this.redeliveryMs(handler),
      consumerDelayMs: this.options.consumerDelayMs,
      reprocessingMs: handler.reprocessingMs ?? this.options.reprocessingMs,
    };
  }

  /** What is wrong with the handlers' retentions, each with its terms and what to do about it. */
  faults(): string[] {
    return this.registry.all().flatMap((handler) => {
      const terms = this.termsOf(handler);
      const { holds, neededMs } = retentionRule(terms);
      // Not a number when @Retry's options are none, which is a fault of its own.
      return holds || Number.isNaN(neededMs) ? [] : [faultOf(handler, terms, neededMs)];
    });
  }

  private redeliveryMs({ patterns }: Handler): number {
    const { redelivery } = this.options.transport();
    const runs = this.explorer.explore().map((found) => this.longestRun(found));
    const redeliveries = patterns.map((pattern) => {
      const { waitsMs, runs: times, patterns: together } = redelivery(pattern);
      const runMs = runs
        .filter((run) => run.patterns.some((other) => together.includes(other)))
        .reduce((sum, run) => sum + run.ms, 0);
      return waitsMs + times * runMs;
    });
    return Math.max(...redeliveries);
  }

  private longestRun({ controller, method, patterns, idempotent }: ExploredHandler): Run {
    const handler = idempotent === undefined ? undefined : this.registry.find(controller, method);
    if (handler === undefined) {
      return { patterns, ms: UNTIMED_RUN_MS };
    }
    // Once more than it is run at once, for the answer that a timed out transaction waits for.
    return { patterns, ms: (SERIALIZATION_RUNS + 1) * handler.transaction.timeoutMs };
  }
}

interface Run {
  patterns: readonly string[];
  ms: number;
}

function faultOf({ consumer }: Handler, terms: RetentionTerms, neededMs: number): string {
  const { retentionMs, redeliveryMs, consumerDelayMs, reprocessingMs } = terms;
  return (
    `${consumer} keeps its keys for ${durationText(retentionMs)}, and a repeat can come after ` +
    `${durationText(neededMs)}: redelivery ${durationText(redeliveryMs)} + consumer's delay ` +
    `${durationText(consumerDelayMs)} (CONSUMER_DELAY) + reprocessing ${durationText(reprocessingMs)} ` +
    `(its option, or REPROCESSING_HORIZON). Give it { retention: '${Math.ceil(neededMs / DAY_MS)}d' } or longer, ` +
    'or declare less; docs/retention.md says what each term means.'
  );
}
