import { randomBytes } from 'node:crypto';
import amqp from 'amqplib';
import { createVhost, deleteVhost } from '../../test/support/broker-admin.js';
import { ManagementApi } from '../../test/support/management-api.js';
import { reasonOf } from '../services/errors.js';
import type { ServiceUrls } from '../services/index.js';

/** Where a run's consumers and its producer meet. */
export interface BrokerPlace {
  url: string;
  /** The service's queue. */
  queue: string;
  exchange: string;
  /** Why it has no vhost of its own, when it has none. */
  shared?: string;
}

/** In seconds. Named here because each is a queue, which has to be deleted where there is no vhost to delete. */
export const RETRY_DELAYS = [1, 5, 30];

/** Where a message of the service can wait, beside its queue. */
export const sideQueues = (queue: string): string[] => [
  `${queue}.suspects`,
  ...RETRY_DELAYS.map((seconds) => `${queue}.retry.${seconds * 1000}`),
];
export const deadLetterQueue = (queue: string): string => `${queue}.dead`;

/** A vhost of its own; where that is not allowed, names of its own in the vhost that was given. */
export async function createPlace(name: string, urls: ServiceUrls): Promise<BrokerPlace> {
  const api = new ManagementApi(urls.rabbitmqManagementUrl);
  const url = new URL(urls.rabbitmqUrl);
  const administrator = decodeURIComponent(url.username);
  const password = randomBytes(12).toString('hex');
  try {
    await createVhost(api, name, password, administrator);
  } catch (error) {
    await deleteVhost(api, name).catch(() => undefined); // made in parts
    return { url: urls.rabbitmqUrl, queue: name, exchange: name, shared: reasonOf(error) };
  }
  url.pathname = `/${name}`;
  url.username = name;
  url.password = password;
  return { url: url.href, queue: 'commissions', exchange: 'events' };
}

export async function removePlace(
  name: string,
  place: BrokerPlace,
  urls: ServiceUrls,
): Promise<void> {
  if (place.shared === undefined)
    await deleteVhost(new ManagementApi(urls.rabbitmqManagementUrl), name);
  else await deleteNames(name, urls);
}

/** Removes all that a crashed run of this name may have made, whichever way it went. */
export async function removeLeftOver(name: string, urls: ServiceUrls): Promise<void> {
  // Where vhosts cannot be deleted, none was made.
  await deleteVhost(new ManagementApi(urls.rabbitmqManagementUrl), name).catch(() => undefined);
  await deleteNames(name, urls);
}

/** To RabbitMQ, deleting what is not there is a success. */
async function deleteNames(name: string, { rabbitmqUrl }: ServiceUrls): Promise<void> {
  const connection = await amqp.connect(rabbitmqUrl);
  try {
    const channel = await connection.createChannel();
    for (const queue of [name, deadLetterQueue(name), ...sideQueues(name)]) {
      await channel.deleteQueue(queue);
    }
    await channel.deleteExchange(name);
  } finally {
    await connection.close();
  }
}
