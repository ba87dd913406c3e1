import { once } from 'node:events';
import amqp, { type Channel, type Message } from 'amqplib';
import { SETTINGS_VARIABLE, type RunReport, type RunSettings } from './run-settings.js';

type Ack = (this: Channel, message: Message, allUpTo?: boolean) => void;

/** Starts consuming, and returns what stops it. */
export type StartConsumer = (settings: RunSettings) => Promise<() => Promise<void>>;

/** The main program of a contender's process: consume, report, and stop when told to. */
export async function runContender(start: StartConsumer): Promise<void> {
  const settings = JSON.parse(process.env[SETTINGS_VARIABLE]!) as RunSettings;
  const told = once(process, 'message');
  await countAcknowledgements(settings.rabbitmqUrl, meter(settings, reportToParent));
  const stop = await start(settings);
  await told;
  await stop();
  process.exit(0);
}

function reportToParent(report: RunReport): void {
  process.send!(report);
}

/**
 * Counts where every contender must pass: amqplib's own ack. The prototype is reached through a channel,
 * because the package does not export its classes.
 */
async function countAcknowledgements(url: string, onAck: () => void): Promise<void> {
  const connection = await amqp.connect(url);
  const prototype = Object.getPrototypeOf(await connection.createChannel()) as { ack: Ack };
  const { ack } = prototype;
  prototype.ack = function (message, allUpTo) {
    if (allUpTo === true) {
      throw new Error('This bench counts acknowledgements of single messages only.');
    }
    ack.call(this, message);
    onAck();
  };
  await connection.close();
}

/** The clock runs from the last message of the warm-up to the last of all. */
function meter({ warmUp, messages }: RunSettings, done: (report: RunReport) => void): () => void {
  let settled = 0;
  let startedAt = 0;
  let cpu = process.cpuUsage();
  return () => {
    settled++;
    if (settled === warmUp) {
      startedAt = performance.now();
      cpu = process.cpuUsage();
    } else if (settled === warmUp + messages) {
      const { user, system } = process.cpuUsage(cpu);
      done({
        seconds: (performance.now() - startedAt) / 1000,
        cpuSeconds: (user + system) / 1e6,
        rssMb: process.memoryUsage.rss() / 2 ** 20,
      });
    }
  };
}
