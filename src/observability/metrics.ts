import { Counter, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

/** How one delivery to one consumer ended. */
export type Outcome =
  | 'processed'
  | 'duplicate'
  | 'key_reuse'
  | 'invalid_key'
  | 'failed'
  | 'key_busy'
  | 'commit_unknown'
  | 'database_unavailable';

/** What the broker was told about one message. */
export type Settlement =
  'acknowledged' | 'retried' | 'delayed' | 'dead_lettered' | 'handed_back' | 'isolated' | 'moved';

/** How a run of the purge ended. */
export type PurgeOutcome = 'completed' | 'out_of_time' | 'stopped' | 'elsewhere' | 'failed';

export const registry = new Registry();

collectDefaultMetrics({ register: registry });

/** Labels are low in cardinality on purpose: never a key or a message id. */
export const outcomes = new Counter({
  name: 'inbox_outcomes_total',
  help: 'Deliveries to idempotent handlers by how they ended.',
  labelNames: ['consumer', 'outcome'],
  registers: [registry],
});

export const handlerSeconds = new Histogram({
  name: 'inbox_handler_duration_seconds',
  help: 'From taking a connection to the end of COMMIT, for deliveries that were processed.',
  labelNames: ['consumer'],
  buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
  registers: [registry],
});

export const duplicateAgeSeconds = new Histogram({
  name: 'inbox_duplicate_age_seconds',
  help: 'Age of the key when its message came again.',
  labelNames: ['consumer'],
  // A second, a minute, ten, an hour, a day, a week, a month, two, three, a year.
  buckets: [1, 60, 600, 3_600, 86_400, 604_800, 2_592_000, 5_184_000, 7_776_000, 31_536_000],
  registers: [registry],
});

export const settlements = new Counter({
  name: 'inbox_settlements_total',
  help: 'Messages by what the broker was told.',
  labelNames: ['settlement', 'reason'],
  registers: [registry],
});

export const purgeRuns = new Counter({
  name: 'inbox_purge_runs_total',
  help: 'Runs of the purge of expired rows by how they ended; elsewhere: another replica was at it.',
  labelNames: ['outcome'],
  registers: [registry],
});

export const purgeDeleted = new Counter({
  name: 'inbox_purge_deleted_total',
  help: 'Expired rows that were deleted, by table.',
  labelNames: ['table'],
  registers: [registry],
});
