import { randomBytes } from 'node:crypto';
import { up, type ServiceUrls } from '../services/index.js';
import { createPlace, removeLeftOver, removePlace, type BrokerPlace } from './broker.js';
import { CONSUMERS, Consumers } from './consumers.js';
import { createDatabase, type DemoDatabase } from './database.js';
import type { Phases } from './display.js';
import type { DemoOptions } from './options.js';
import type { Releases } from './releases.js';
import { Shop } from './shop.js';

/** What a run works with; nobody else does. */
export interface Stage {
  database: DemoDatabase;
  place: BrokerPlace;
  consumers: Consumers;
  shop: Shop;
}

export interface StageOptions extends Pick<DemoOptions, 'naive'> {
  phases: Phases;
  /** Gets everything that is opened. */
  releases: Releases;
  signal: AbortSignal;
}

/** Starts the servers where necessary, and in them all that a run needs. */
export async function setTheStage(options: StageOptions): Promise<Stage> {
  const { phases, releases, naive } = options;
  const urls = await phases.run('PostgreSQL and RabbitMQ', () => up({ log: phases.note }));
  const { database, place } = await phases.run('Own database and vhost', () =>
    makeRoom(urls, options),
  );
  const consumers = new Consumers(naive ? 'naive' : 'service', database.url, place);
  await releases.open(
    () => Promise.resolve(consumers),
    () => consumers.kill(),
  );
  await phases.run(naive ? 'Two naive consumers' : 'Two consumers', () =>
    Promise.all(CONSUMERS.map((number) => consumers.start(number))),
  );
  const shop = await releases.open(
    () => Shop.open(place.url, place.exchange),
    (opened) => opened.close(),
  );
  return { database, place, consumers, shop };
}

async function makeRoom(
  urls: ServiceUrls,
  { phases, releases, signal }: StageOptions,
): Promise<Pick<Stage, 'database' | 'place'>> {
  const name = `demo_${randomBytes(4).toString('hex')}`;
  // The database comes first and goes last: it is by the database that a later run finds what a
  // crashed one has left behind.
  const database = await releases.open(
    () =>
      createDatabase(name, urls.databaseUrl, async (leftOver) => {
        phases.note(`Removing ${leftOver}, left by a demo that was killed.`);
        await removeLeftOver(leftOver, urls);
      }),
    (opened) => opened.remove(),
  );
  const place = await releases.open(
    () => createPlace(name, urls),
    (made) => removePlace(name, made, urls),
  );
  if (place.shared !== undefined) {
    phases.note(`No vhost of its own (${place.shared}): using queues named ${name} in yours.`);
  }
  await database.migrate(signal);
  return { database, place };
}
