import { root, uniqueName } from './checkout.js';
import { untilItAnswers } from './answers.js';
import { ServicesError } from './errors.js';
import { choosePorts } from './ports.js';
import { run, type RunOptions } from './processes.js';
import type { Log, Server } from './server.js';
import { portsIn, urlsOf, writeState, type State } from './state.js';
import type { Way } from './way.js';

/** As in docker-compose.yml. Known to everybody, which is why the ports are published on loopback only. */
const LOGIN = { user: 'app', password: 'app' };

export const compose: Way = {
  name: 'compose',
  title: 'Docker',

  async obstacle() {
    if (!(await works(['info', '--format', '{{.ServerVersion}}'])))
      return 'no engine answers (docker info).';
    if (await works(['compose', 'version'])) return undefined;
    return 'an engine answers, but the compose plugin is missing (docker compose version).';
  },

  async start(wanted, state, log) {
    for (const server of wanted) {
      const known = state.servers[server.name];
      const remembered = known?.way === 'compose' ? known.ports : {};
      const ports = await portsFor(server, remembered, state);
      state.servers[server.name] = { way: 'compose', ports, ...LOGIN, initialised: true };
    }
    writeState(state);
    const titles = wanted.map(({ title }) => title).join(' and ');
    log(`docker compose starts ${titles}; the first time it downloads their images`);
    const names = wanted.map(({ name }) => name);
    await project(['up', '--detach', '--wait', ...names], {
      env: portVariables(wanted, state),
      timeoutMs: 600_000,
      onLine: log,
    });
    await Promise.all(wanted.map((server) => checkFromHere(server, state, log)));
  },

  async stop({ state, data, log }) {
    if (!Object.values(state.servers).some(({ way }) => way === 'compose')) return;
    log('docker compose stops the containers');
    await project(['down', ...(data ? ['--volumes'] : [])], { timeoutMs: 120_000 });
  },
};

/** Healthy inside its container is not yet reachable from here: an engine can be on another machine. */
async function checkFromHere(server: Server, state: State, log: Log): Promise<void> {
  const options = {
    timeoutMs: 15_000,
    log,
    waitingFor: 'its container is healthy, waiting for its port',
  };
  const failure = await untilItAnswers(server, urlsOf(server, state)!, options);
  if (failure === undefined) return;
  throw new ServicesError(
    `${failure}\nIts container is healthy all the same. Is the Docker engine on this machine? ` +
      'Are the data from another password? Then: npm run services -- reset',
  );
}

/** A running container of ours holds its ports, so they are not free and must still not be changed. */
async function portsFor(
  server: Server,
  remembered: Readonly<Record<string, number>>,
  state: State,
): Promise<Record<string, number>> {
  const names = Object.keys(server.composePorts);
  if (names.every((name) => name in remembered) && (await isRunning(server)))
    return { ...remembered };
  return choosePorts(names, remembered, portsIn(state));
}

const isRunning = async (server: Server): Promise<boolean> =>
  (await project(['ps', '--quiet', server.name], { timeoutMs: 30_000 })).trim() !== '';

function portVariables(wanted: readonly Server[], state: State): Record<string, string> {
  const entries = wanted.flatMap((server) =>
    Object.entries(server.composePorts).map(([port, variable]) => [
      variable,
      String(state.servers[server.name]?.ports[port]),
    ]),
  );
  return Object.fromEntries(entries) as Record<string, string>;
}

type DockerOptions = Omit<RunOptions, 'folder' | 'owner'>;

const docker = (args: readonly string[], options: DockerOptions): Promise<string> =>
  run('docker', args, { folder: root, inheritEnvironment: true, ...options });

const project = (args: readonly string[], options: DockerOptions): Promise<string> =>
  docker(['compose', '--project-name', uniqueName, ...args], options);

const works = (args: readonly string[]): Promise<boolean> =>
  docker(args, { timeoutMs: 5_000 }).then(
    () => true,
    () => false,
  );
