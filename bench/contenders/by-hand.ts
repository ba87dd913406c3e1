import amqp, { type ConsumeMessage } from 'amqplib';
import { Pool } from 'pg';
import type { StartConsumer } from './contender.js';
import type { RunSettings } from './run-settings.js';

/** What a hand-written consumer does with one message. */
export type Handle = (message: ConsumeMessage, pool: Pool, settings: RunSettings) => Promise<void>;

/** A loop of amqplib and pg: as many messages at a time as the broker lets through, each acknowledged by itself. */
export function byHand(handle: Handle): StartConsumer {
  return async (settings) => {
    const poolConfig = {
      connectionString: settings.databaseUrl,
      max: settings.concurrency,
      pipeline: true,
    };
    const pool = new Pool(poolConfig);
    const connection = await amqp.connect(settings.rabbitmqUrl);
    const channel = await connection.createChannel();
    await channel.prefetch(settings.concurrency);
    await channel.consume(settings.queue, (message) => {
      if (message !== null) {
        // A message that fails is a defect of the bench, and ends the process as an unhandled rejection.
        void handle(message, pool, settings).then(() => channel.ack(message));
      }
    });
    return async () => {
      await channel.close();
      await connection.close();
      await pool.end();
    };
  };
}
