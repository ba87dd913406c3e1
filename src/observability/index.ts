export {
  duplicateAgeSeconds,
  handlerSeconds,
  outcomes,
  registry,
  settlements,
  type Outcome,
  type Settlement,
} from './metrics.js';
export { redactUrls } from './redact.js';
export { ServiceLogger } from './service-logger.js';
