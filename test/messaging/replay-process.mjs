/**
 * Replays every dead letter of the service `commissions` from a process of its own, so that a test can kill it.
 * RABBITMQ_URL says where. It runs what is built.
 */
import { ConfirmedPublisher } from '../../dist/src/messaging/publish/confirmed-publisher.js';
import { DeadLetters } from '../../dist/src/messaging/index.js';

const options = { url: process.env.RABBITMQ_URL, queue: 'commissions', exchange: 'events' };
await new DeadLetters(options, new ConfirmedPublisher(options)).replay({ all: true });
process.exit();
