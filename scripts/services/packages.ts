import { randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { answers, untilItAnswers } from './answers.js';
import { install, installObstacle } from './apt.js';
import { reasonOf, ServicesError } from './errors.js';
import { exists } from './files.js';
import { ownerOf, placeFor, placesOf, prepareFolder, removeFolder } from './instance-folder.js';
import { choosePorts } from './ports.js';
import { lastLines, processesIn, stopProcesses } from './processes.js';
import type { Instance, Launched, Log, Server } from './server.js';
import { servers } from './servers.js';
import { portsIn, writeState, type ServerState, type State } from './state.js';
import type { Way } from './way.js';

const START_TIMEOUT_MS = 120_000;
/** How long a server that runs may stay silent: it may be recovering, or the machine may be busy. */
const SILENCE_TIMEOUT_MS = 30_000;

export const packages: Way = {
  name: 'packages',
  title: 'System packages',

  async obstacle(wanted) {
    if (process.platform !== 'linux') return 'only on Debian and Ubuntu.';
    const missing = await notInstalled(wanted);
    return missing.length === 0 ? undefined : installObstacle(missing.map(({ debian }) => debian));
  },

  async start(wanted, state, log) {
    const missing = await notInstalled(wanted);
    if (missing.length > 0) await installAll(missing, log);
    const recovered = await Promise.all(wanted.map((server) => recovers(server, state, log)));
    // One after the other, so that no two choose the same port; then all start together.
    const instances: [Server, Instance][] = [];
    for (const server of wanted.filter((_, index) => !recovered[index])) {
      instances.push([server, await prepare(server, state, log)]);
    }
    const results = await Promise.allSettled(
      instances.map(([server, instance]) => start(server, instance, state, log)),
    );
    for (const result of results) if (result.status === 'rejected') throw result.reason;
  },

  async stop({ data, log }) {
    await Promise.all(
      servers.map(async (server) => {
        if (await stopEverywhere(server)) log(`${server.title}: stopped`);
        if (data) await Promise.all(placesOf(server).map(removeFolder));
      }),
    );
  },
};

async function notInstalled(wanted: readonly Server[]): Promise<Server[]> {
  const found = await Promise.all(wanted.map((server) => server.debian.programs()));
  return wanted.filter((_, index) => found[index] === undefined);
}

async function installAll(missing: readonly Server[], log: Log): Promise<void> {
  const wanted = missing.map(({ debian }) => debian);
  await install(wanted, log).catch((error: unknown) => {
    const variables = missing.map(({ variable }) => variable).join(' and ');
    throw new ServicesError(
      `${reasonOf(error)}\nWithout these packages: use Docker, or set ${variables} to servers that you have (docs/services.md).`,
    );
  });
}

async function stopEverywhere(server: Server): Promise<boolean> {
  const { processes, stopSignal } = server.debian;
  const stopped = await Promise.all(
    placesOf(server).map((folder) => stopProcesses(folder, processes, stopSignal)),
  );
  return stopped.includes(true);
}

const isRunning = async (server: Server): Promise<boolean> => {
  const found = await Promise.all(
    placesOf(server).map((folder) => processesIn(folder, [server.debian.main])),
  );
  return found.flat().length > 0;
};

/** Whether a silent server of ours answers after all. Others may be using it, so it gets time before it is stopped. */
async function recovers(server: Server, state: State, log: Log): Promise<boolean> {
  const entry = state.servers[server.name];
  if (entry?.way !== 'packages' || !(await isRunning(server))) return false;
  const seconds = SILENCE_TIMEOUT_MS / 1000;
  log(`${server.title}: runs but does not answer, waiting up to ${seconds} s`);
  const deadline = Date.now() + SILENCE_TIMEOUT_MS;
  while (Date.now() < deadline && (await isRunning(server))) {
    if (await answers(server, server.urls(entry))) {
      entry.initialised = true;
      writeState(state);
      return true;
    }
    await sleep(200);
  }
  return false;
}

/** Folder, ports and password, remembered before anything runs. */
async function prepare(server: Server, state: State, log: Log): Promise<Instance> {
  const before = state.servers[server.name];
  const known = before?.way === 'packages' ? before : undefined;
  const owner = await ownerOf(server, known?.folder);
  const folder = known?.folder ?? (await placeFor(server, owner));
  // Its state file may have been deleted meanwhile.
  const stopped = await stopEverywhere(server);
  if (stopped) log(`${server.title}: stopped one of this checkout that did not answer`);
  const programs = await server.debian.programs();
  if (!programs) {
    throw new ServicesError(
      `${server.debian.name} is installed, but its programs are not where Debian and Ubuntu put them. Reinstall it.`,
    );
  }
  const entry: ServerState = {
    way: 'packages',
    ports: await choosePorts(server.ports, known?.ports ?? {}, portsIn(state)),
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
  const keep = entry.initialised && (await exists(join(instance.folder, 'data')));
  await prepareFolder(instance, { empty: !keep });
  if (!keep) {
    log(`${server.title}: preparing ${instance.folder}`);
    await server.debian.initialise(instance);
  }
  log(`${server.title}: starting`);
  const launched = await server.debian.launch(instance);
  const failure = await untilItAnswers(server, server.urls(instance), {
    timeoutMs: START_TIMEOUT_MS,
    hopeless: launched.ended,
    log,
    waitingFor: `still starting, its log is ${launched.logFile}`,
  });
  if (failure !== undefined) throw await startFailed(server, launched, failure);
  entry.initialised = true;
  writeState(state);
  log(`${server.title}: ready after ${((Date.now() - began) / 1000).toFixed(1)} s`);
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
