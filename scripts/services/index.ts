import { answers } from './answers.js';
import { compose } from './compose.js';
import { foreignUrls, fromEnvironment, mainUrl } from './environment.js';
import { ServicesError } from './errors.js';
import { withLock } from './lock.js';
import { packages } from './packages.js';
import type { Log, Server, ServiceUrls } from './server.js';
import { servers } from './servers.js';
import { readState, urlsOf, writeState, type State } from './state.js';
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
  let state = remembered();
  const given = await fromEnvironment(servers, state);
  const ours = servers.filter(({ name }) => !given.has(name));
  if (ours.length > 0) {
    if ((await silentOnes(ours, state)).length > 0) {
      state = await withLock(log, () => startSilentOnes(ours, log));
    }
    for (const server of ours) given.set(server.name, urlsOf(server, state)!);
  }
  return Object.assign({}, ...given.values()) as ServiceUrls;
}

/** Stops what `up` started; `data` deletes its data as well. Servers from the environment are left alone. */
export async function down({
  log = silent,
  data = false,
}: Options & { data?: boolean } = {}): Promise<void> {
  await withLock(log, async () => {
    const state = readState();
    for (const way of ways) await way.stop({ state, data, log });
    if (!data || Object.keys(state.servers).length === 0) return;
    // Ports and passwords stay, so that URLs which somebody has copied are right again after the next start.
    for (const entry of Object.values(state.servers)) entry.initialised = false;
    writeState(state);
  });
}

/** Stops what `up` started, deletes its data, and starts it again. */
export async function reset(options: Options = {}): Promise<ServiceUrls> {
  await down({ ...options, data: true });
  return up(options);
}

export async function status(): Promise<ServerStatus[]> {
  const state = remembered();
  return Promise.all(
    servers.map(async (server) => {
      const foreign = foreignUrls(server, state);
      const urls = foreign ?? urlsOf(server, state);
      return {
        name: server.name,
        title: server.title,
        way: foreign ? 'environment' : (state.servers[server.name]?.way ?? 'none'),
        url: urls && redact(mainUrl(urls)),
        up: await answers(server, urls),
      };
    }),
  );
}

/** Of no interest, and perhaps another user's, when the environment has every URL. */
const remembered = (): State =>
  readState({ lenient: servers.every((server) => server.fromEnvironment(process.env)) });

async function silentOnes(wanted: readonly Server[], state: State): Promise<Server[]> {
  const answering = await Promise.all(
    wanted.map((server) => answers(server, urlsOf(server, state))),
  );
  return wanted.filter((_, index) => !answering[index]);
}

/** Inside the lock, so it looks again: another terminal may just have started them. */
async function startSilentOnes(ours: readonly Server[], log: Log): Promise<State> {
  const state = readState();
  const wanted = await silentOnes(ours, state);
  if (wanted.length === 0) return state;
  const obstacles: string[] = [];
  let failure: ServicesError | undefined;
  for (const way of inOrder(wanted, state)) {
    const obstacle = await way.obstacle(wanted);
    if (obstacle !== undefined) {
      obstacles.push(`  ${way.title}: ${obstacle}`);
      continue;
    }
    if (failure) log(`${failure.message}\nTrying another way.`);
    failure = await way.start(wanted, state, log).then(() => undefined, expected);
    if (!failure) return state;
  }
  throw failure ?? noWay(wanted, obstacles);
}

function expected(error: unknown): ServicesError {
  if (error instanceof ServicesError) return error;
  throw error;
}

/** The way that already holds this checkout's data comes first, so that an engine that appears later does not hide them. */
function inOrder(wanted: readonly Server[], state: State): Iterable<Way> {
  const used = ways.filter((way) =>
    wanted.some(({ name }) => state.servers[name]?.way === way.name),
  );
  return new Set([...used, ...ways]);
}

function noWay(wanted: readonly Server[], obstacles: readonly string[]): ServicesError {
  const variables = wanted.map(({ variable }) => variable).join(' and ');
  return new ServicesError(
    [
      `${wanted.map(({ title }) => title).join(' and ')}: no server answers, and this machine offers no way to start one. One of these helps:`,
      `  Environment: set ${variables} to servers that you have.`,
      ...obstacles,
      'docs/services.md explains each of them.',
    ].join('\n'),
  );
}
