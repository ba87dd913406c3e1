import { Commissions1767225601000 } from './1767225601000-commissions.js';
import { ConsumerDay1767225603000 } from './1767225603000-consumer-day.js';
import { ProcessedMessage1767225600000 } from './1767225600000-processed-message.js';
import { Retention1767225604000 } from './1767225604000-retention.js';

/** Every migration, oldest first. A new one is added here; files are not found by pattern. */
export const migrations = [
  ProcessedMessage1767225600000,
  Commissions1767225601000,
  ConsumerDay1767225603000,
  Retention1767225604000,
];
