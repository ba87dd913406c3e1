export { appConfig, loadAppConfig, loadDatabaseUrl, type AppConfig } from './app.config.js';
export { ConfigurationError } from './configuration.error.js';
export { processEnvironment, type Environment } from './environment.js';
