import { compose } from './compose.js';
import { reasonOf, ServicesError } from './errors.js';
import { withLock } from './lock.js';
import { packages } from './packages.js';
import type { Log, Server, ServiceUrls, Urls } from './server.js';
import { servers } from './servers.js';
import { readState, writeState, type State } from './state.js';
import { redact } from './url.js';
import type { Way } from './way.js';

export { ServicesError } from './errors.js';
export type { ServiceUrls } from './server.js';

export interface Options {
  /** Receives a line whenever there is progress to tell. */
  log?: Log;
}

export interface ServerStatus {
  name: string;
  title: string;
  way: 'environment' | Way['name'] | 'none';
  /** Without its password. */
  url: string | undefined;
  up: boolean;
}

/** In the order in which they are tried. */
const ways: readonly Way[] = [compose, packages];

const silent: Log = () => {};

/**
 * Makes sure that every server answers and returns their URLs: those in the environment when they are set, else
 * servers of this checkout, started when necessary. Throws a {@link ServicesError} whose message says what to do.
 */
export async function up({ log = silent }: Options = {}): Promise<ServiceUrls> {
  const given = await fromEnvironment();
  const ours = servers.filter(({ name }) => !given.has(name));
  let state = readState();
  if ((await silentOnes(ours, state)).length > 0) {
    state = await withLock(log, () => startSilentOnes(ours, log));
  }
  const urls = servers.map((server) => given.get(server.name) ?? urlsOf(server, state));
  return Object.assign({}, ...urls) as ServiceUrls;
}

/** Stops what `up` started; `data` deletes its data as well. */
export async function down({
  log = silent,
  data = false,
}: Options & { data?: boolean } = {}): Promise<void> {
  await withLock(log, () => stopAll(data, log));
}

/** Stops what `up` started, deletes its data, and starts it again. */
export async function reset(options: Options = {}): Promise<ServiceUrls> {
  await down({ ...options, data: true });
  return up(options);
}

export async function status(): Promise<ServerStatus[]> {
  const state = readState();
  return Promise.all(
    servers.map(async (server) => {
      const given = server.fromEnvironment(process.env);
      const urls = given ?? urlsOf(server, state);
      const answers = urls !== undefined && (await answersAt(server, urls));
      const way = given ? 'environment' : (state.servers[server.name]?.way ?? 'none');
      const url = urls && redact(Object.values(urls)[0]!);
      return { name: server.name, title: server.title, way, url, up: answers };
    }),
  );
}

async function fromEnvironment(): Promise<Map<string, Urls>> {
  const given = new Map<string, Urls>();
  await Promise.all(
    servers.map(async (server) => {
      const urls = server.fromEnvironment(process.env);
      if (!urls) return;
      await server.check(urls).catch((error: unknown) => {
        throw new ServicesError(
          `${reasonOf(error)}\n${server.variable} is set in the environment. Start that server, correct the URL, or unset it to have one started for you.`,
        );
      });
      given.set(server.name, urls);
    }),
  );
  return given;
}

function urlsOf(server: Server, state: State): Urls | undefined {
  const known = state.servers[server.name];
  return known && server.urls(known);
}

const answersAt = (server: Server, urls: Urls): Promise<boolean> =>
  server.check(urls).then(
    () => true,
    () => false,
  );

async function silentOnes(wanted: readonly Server[], state: State): Promise<Server[]> {
  const answers = await Promise.all(
    wanted.map(async (server) => {
      const urls = urlsOf(server, state);
      return urls !== undefined && (await answersAt(server, urls));
    }),
  );
  return wanted.filter((_, index) => !answers[index]);
}

/** Inside the lock, so it looks again: another terminal may just have started them. */
async function startSilentOnes(ours: readonly Server[], log: Log): Promise<State> {
  const state = readState();
  const silentNow = await silentOnes(ours, state);
  if (silentNow.length === 0) return state;
  const remembered = ways.filter((way) =>
    silentNow.some(({ name }) => state.servers[name]?.way === way.name),
  );
  const obstacles: string[] = [];
  for (const way of new Set([...remembered, ...ways])) {
    const obstacle = await way.obstacle(silentNow);
    if (obstacle === undefined) {
      await way.start(silentNow, state, log);
      return state;
    }
    obstacles.push(`  ${way.title}: ${obstacle}`);
  }
  throw noWay(silentNow, obstacles);
}

function noWay(wanted: readonly Server[], obstacles: readonly string[]): ServicesError {
  const variables = wanted.map(({ variable }) => variable).join(' and ');
  return new ServicesError(
    [
      `${wanted.map(({ title }) => title).join(' and ')}: not there, and no way to start it here. One of these helps:`,
      `  Environment: set ${variables} to servers that you have.`,
      ...obstacles,
      'docs/services.md explains each of them.',
    ].join('\n'),
  );
}

async function stopAll(data: boolean, log: Log): Promise<void> {
  const state = readState();
  for (const way of ways) {
    const started = servers.filter(({ name }) => state.servers[name]?.way === way.name);
    if (started.length > 0) await way.stop(started, { state, data, log });
    else continue;
    if (data) for (const { name } of started) state.servers[name]!.initialised = false;
  }
  writeState(state);
}
