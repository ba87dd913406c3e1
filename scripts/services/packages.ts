import { randomBytes } from 'node:crypto';
import { readFile, rm } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { installObstacle, install } from './apt.js';
import { ServicesError, reasonOf } from './errors.js';
import { folderOf, ownerOf, prepareFolder } from './instance-folder.js';
import { choosePorts } from './ports.js';
import { lastLines, stopProcesses } from './processes.js';
import type { Instance, Launched, Log, Server } from './server.js';
import { writeState, type ServerState, type State } from './state.js';
import type { Way } from './way.js';

const START_TIMEOUT_MS = 120_000;
const TELL_EVERY_MS = 10_000;

export const packages: Way = {
  name: 'packages',
  title: 'System packages',

  async obstacle(servers) {
    if (process.platform !== 'linux') return 'only on Debian and Ubuntu.';
    const missing = await notInstalled(servers);
    return missing.length === 0 ? undefined : installObstacle(missing);
  },

  async start(servers, state, log) {
    const missing = await notInstalled(servers);
    if (missing.length > 0) await install(missing, log);
    // One after the other, so that no two choose the same port or write the state at once; then both start together.
    const instances: [Server, Instance][] = [];
    for (const server of servers) instances.push([server, await prepare(server, state, log)]);
    await Promise.all(instances.map(([server, instance]) => start(server, instance, state, log)));
  },

  async stop(servers, { state, data, log }) {
    await Promise.all(
      servers.map(async (server) => {
        const folder = state.servers[server.name]?.folder;
        if (!folder) return;
        if (await stopIn(folder, server)) log(`${server.title}: stopped`);
        if (data) await rm(folder, { recursive: true, force: true });
      }),
    );
  },
};

async function notInstalled(servers: readonly Server[]): Promise<Server[]> {
  const found = await Promise.all(servers.map((server) => server.debian.programs()));
  return servers.filter((_, index) => found[index] === undefined);
}

const stopIn = (folder: string, { debian }: Server): Promise<boolean> =>
  stopProcesses(folder, debian.processes, debian.stopSignal);

/** Folder, ports and password, remembered before anything runs. */
async function prepare(server: Server, state: State, log: Log): Promise<Instance> {
  const before = state.servers[server.name];
  const known = before?.way === 'packages' ? before : undefined;
  const owner = await ownerOf(server, known?.folder);
  const folder = known?.folder ?? (await folderOf(server, owner));
  // Whatever lives here does not answer, or is from a state file that somebody has deleted.
  if (await stopIn(folder, server))
    log(`${server.title}: stopped one of this checkout that did not answer`);
  const programs = await server.debian.programs();
  if (!programs)
    throw new ServicesError(
      `${server.debian.name} is installed but its programs are not where Debian puts them.`,
    );
  const taken = Object.values(state.servers).flatMap(({ ports }) => Object.values(ports));
  const ports = await choosePorts(server.ports, known?.ports ?? {}, new Set(taken));
  const entry: ServerState = {
    way: 'packages',
    ports,
    user: 'app',
    password: known?.password ?? randomBytes(12).toString('hex'),
    folder,
    initialised: known?.initialised ?? false,
  };
  state.servers[server.name] = entry;
  writeState(state);
  return { ...entry, folder, programs, ...(owner && { owner }) };
}

async function start(server: Server, instance: Instance, state: State, log: Log): Promise<void> {
  const began = Date.now();
  const entry = state.servers[server.name]!;
  await prepareFolder(instance, { empty: !entry.initialised });
  if (!entry.initialised) {
    log(`${server.title}: preparing ${instance.folder}`);
    await server.debian.initialise(instance);
  }
  log(`${server.title}: starting`);
  const launched = await server.debian.launch(instance);
  await untilItAnswers(server, instance, launched, log);
  entry.initialised = true;
  writeState(state);
  log(`${server.title}: ready after ${((Date.now() - began) / 1000).toFixed(1)} s`);
}

async function untilItAnswers(
  server: Server,
  instance: Instance,
  launched: Launched,
  log: Log,
): Promise<void> {
  const began = Date.now();
  let tell = began + TELL_EVERY_MS;
  for (;;) {
    // Asked before the check: a process that ends in between has still been tried once more.
    const ended = launched.ended();
    const failure = await server.check(server.urls(instance)).then(() => undefined, reasonOf);
    if (failure === undefined) return;
    if (ended || Date.now() - began > START_TIMEOUT_MS)
      throw await startFailed(server, launched, failure);
    if (Date.now() > tell) {
      log(`${server.title}: still starting, its log is ${launched.logFile}`);
      tell += TELL_EVERY_MS;
    }
    await sleep(100);
  }
}

async function startFailed(
  server: Server,
  launched: Launched,
  failure: string,
): Promise<ServicesError> {
  const output = await readFile(launched.logFile, 'utf8').catch(() => '');
  return new ServicesError(
    `${failure}\nIts log, ${launched.logFile}, ends with:\n${lastLines(output)}\n` +
      `If ${server.title}'s data is damaged, start with empty ones: npm run services -- reset`,
  );
}
