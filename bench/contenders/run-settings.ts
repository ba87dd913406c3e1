export const WORKLOADS = ['insert', 'example'] as const;
export type Workload = (typeof WORKLOADS)[number];

/** What a contender's process is told. */
export interface RunSettings {
  databaseUrl: string;
  rabbitmqUrl: string;
  exchange: string;
  queue: string;
  workload: Workload;
  /** Messages in work at the same time. */
  concurrency: number;
  /** Messages that are settled before the measurement begins. */
  warmUp: number;
  /** Messages that are measured. */
  messages: number;
}

/** What it answers when the last message is settled. */
export interface RunReport {
  /** Settling the measured messages took so long. */
  seconds: number;
  /** Processor time of the contender's process meanwhile, user and system. */
  cpuSeconds: number;
  rssMb: number;
}

/** The environment variable that holds the settings as JSON. */
export const SETTINGS_VARIABLE = 'BENCH_RUN';

export type RoutingKey = 'bench.insert' | 'sale.completed';

/** Where each workload's messages are routed. The example's is the service's own handler. */
export const ROUTING_KEYS: Record<Workload, RoutingKey> = {
  insert: 'bench.insert',
  example: 'sale.completed',
};
