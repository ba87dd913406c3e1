export {
  duplicateAgeSeconds,
  handlerSeconds,
  outcomes,
  purgeDeleted,
  purgeRuns,
  registry,
  settlements,
  type Outcome,
  type PurgeOutcome,
  type Settlement,
} from './metrics.js';
export { redactUrls } from './redact.js';
export { ServiceLogger } from './service-logger.js';
