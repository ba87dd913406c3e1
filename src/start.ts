import { Logger, type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { appConfig, type AppConfig } from './config/index.js';
import { ReliableRmqServer } from './messaging/index.js';
import { ServiceLogger } from './observability/index.js';

/**
 * Starts the service as a process: with its configured log, stopping on signals.
 *
 * @throws ConfigurationError, StartupFaultsError, TopologyError, or what a server answered
 */
export async function start(): Promise<void> {
  const { logFormat, logLevel } = appConfig();
  const logger = new ServiceLogger(logFormat, logLevel);
  // Work that nobody awaits cannot spoil a transaction: a defect to be seen, not a reason to stop.
  process.on('unhandledRejection', (reason) =>
    logger.error(reason, undefined, 'UnhandledRejection'),
  );
  const app = await NestFactory.create(AppModule, { abortOnError: false, logger });
  stopOnSignals(app);
  await serve(app);
}

/**
 * Checks, then consumes: no message is taken by a service that is not safe to run. HTTP answers as soon
 * as the checks have passed, also while the broker is away.
 */
export async function serve(app: INestApplication): Promise<void> {
  const { port, serviceName } = app.get<AppConfig>(appConfig.KEY);
  app.connectMicroservice({ strategy: app.get(ReliableRmqServer) }, { inheritAppConfig: true });
  await app.init();
  await app.listen(port);
  await app.startAllMicroservices();
  new Logger('Start').log(`${serviceName} is consuming.`);
}

/**
 * The first signal stops in order: no new messages, wait for those that have started while probes are
 * still answered, then close. A second one does not wait.
 */
function stopOnSignals(app: INestApplication): void {
  const logger = new Logger('Stop');
  let stopping = false;
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    if (stopping) {
      logger.warn(`${signal} again: stopping at once.`);
      process.exit(1);
    }
    stopping = true;
    logger.log(`${signal}: finishing the messages that have started.`);
    await app.get(ReliableRmqServer).close();
    await app.close();
    process.exit(0);
  };
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, (received) => {
      stop(received).catch((error: unknown) => {
        logger.error(error);
        process.exit(1);
      });
    });
  }
}
