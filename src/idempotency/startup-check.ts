import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { DataSource } from 'typeorm';
import { pendingMigrations } from '../database/index.js';
import { StartupFaultsError } from './errors.js';
import { handlerFrom } from './handler.js';
import { HandlerExplorer, type ExploredHandler } from './handler-explorer.js';
import { HandlerRegistry } from './handler-registry.js';
import { IDEMPOTENCY_OPTIONS, type IdempotencyOptions } from './idempotency.options.js';
import { hasKeyConstraint } from './key-constraint.js';
import { RetentionCheck } from './retention/retention-check.js';

/**
 * Decides whether the service may start, and fills the registry when it may. It refuses a handler that
 * nobody thought about, and a database that would not protect it, and names all faults at once.
 */
@Injectable()
export class StartupCheck implements OnApplicationBootstrap {
  constructor(
    private readonly explorer: HandlerExplorer,
    private readonly registry: HandlerRegistry,
    private readonly retention: RetentionCheck,
    private readonly dataSource: DataSource,
    @Inject(IDEMPOTENCY_OPTIONS) private readonly options: IdempotencyOptions,
  ) {}

  /** @throws StartupFaultsError */
  async onApplicationBootstrap(): Promise<void> {
    const explored = this.explorer.explore();
    const faults = [
      ...explored.flatMap((handler) => this.register(handler)),
      ...this.sharedConsumers(),
      ...this.retention.faults(),
      ...this.transportFaults(),
      ...(await this.schemaFaults()),
    ];
    if (faults.length > 0) {
      throw new StartupFaultsError(faults);
    }
  }

  private register(found: ExploredHandler): string[] {
    const faults = markingFaults(found);
    if (faults.length > 0 || found.idempotent === undefined) {
      return faults;
    }
    const consumer =
      found.idempotent.options.consumer ?? `${this.options.serviceName}/${found.patterns[0]}`;
    try {
      const handler = handlerFrom(found.idempotent, consumer, found.isRequest, found.patterns);
      this.registry.add(found.controller, found.method, handler);
      return [];
    } catch (error) {
      return [`${found.title}: ${(error as Error).message}.`];
    }
  }

  private sharedConsumers(): string[] {
    const names = this.registry.all().map((handler) => handler.consumer);
    const shared = new Set(names.filter((name, index) => names.indexOf(name) !== index));
    return [...shared].map(
      (name) =>
        `Two handlers have the consumer name ${name}, so that one would take the other's keys for ` +
        'duplicates. Give each a name of its own: @IdempotentHandler(key, { consumer: "…" }).',
    );
  }

  private transportFaults(): string[] {
    const { poolSize, transport } = this.options;
    const { concurrency, faults } = transport();
    // Each message in work holds one connection; the health check needs one beside them.
    const needed = concurrency + 1;
    return poolSize >= needed
      ? [...faults]
      : [
          ...faults,
          `DATABASE_POOL_SIZE is ${poolSize}, and ${concurrency} messages in work at the same time need ` +
            `${needed}: raise it, or lower CONSUMER_CONCURRENCY or a queue's own concurrency.`,
        ];
  }

  private async schemaFaults(): Promise<string[]> {
    const pending = await pendingMigrations(this.dataSource);
    if (pending.length > 0) {
      return [`The database is behind by ${pending.join(', ')}: run \`npm run migrate\`.`];
    }
    return (await hasKeyConstraint(this.dataSource))
      ? []
      : [
          'The table processed_message with its primary key (consumer, key) is missing, and nothing ' +
            'else tells a duplicate: restore it as the first migration creates it.',
        ];
  }
}

function markingFaults(found: ExploredHandler): string[] {
  const { title, patterns, idempotent, naturallyIdempotent } = found;
  if (patterns.length === 0) {
    return [`${title} is marked as idempotent and handles no message: add @EventPattern.`];
  }
  if (idempotent !== undefined && naturallyIdempotent !== undefined) {
    return [`${title} has both @IdempotentHandler and @NaturallyIdempotent: keep one of them.`];
  }
  if (naturallyIdempotent !== undefined) {
    return naturallyIdempotent.trim() === ''
      ? [`${title}: @NaturallyIdempotent needs the reason why repeating it is harmless.`]
      : [];
  }
  if (idempotent === undefined) {
    return [
      `${title} (${patterns.join(', ')}) does not say what a repeated message does: add ` +
        "@IdempotentHandler(keyFrom), or @NaturallyIdempotent('why repeating it is harmless').",
    ];
  }
  return patterns.length > 1 && idempotent.options.consumer === undefined
    ? [`${title} has several patterns: name its keys' scope, { consumer: "…" }.`]
    : [];
}
