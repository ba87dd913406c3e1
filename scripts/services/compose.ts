import { root, uniqueName } from './checkout.js';
import { choosePorts } from './ports.js';
import { run } from './processes.js';
import type { Log, Server } from './server.js';
import { writeState, type State } from './state.js';
import type { Way } from './way.js';

/** As in docker-compose.yml. Known to everybody, so the ports are published on loopback only. */
const LOGIN = { user: 'app', password: 'app' };

export const compose: Way = {
  name: 'compose',
  title: 'Docker',

  async obstacle() {
    try {
      await docker(['info', '--format', '{{.ServerVersion}}'], { timeoutMs: 5_000 });
    } catch {
      return 'no Docker engine answers (docker info).';
    }
    try {
      await docker(['compose', 'version'], { timeoutMs: 5_000 });
      return undefined;
    } catch {
      return 'an engine answers, but the compose plugin is missing (docker compose version).';
    }
  },

  async start(servers, state, log) {
    for (const server of servers) {
      const remembered = state.servers[server.name]?.ports ?? {};
      const taken = new Set(
        Object.values(state.servers).flatMap(({ ports }) => Object.values(ports)),
      );
      const ports = await choosePorts(Object.keys(server.composePorts), remembered, taken);
      state.servers[server.name] = { way: 'compose', ports, ...LOGIN, initialised: true };
    }
    writeState(state);
    log(
      `docker compose starts ${servers.map(({ title }) => title).join(' and ')}; a first time downloads the images`,
    );
    await docker(
      ['compose', '-p', uniqueName, 'up', '-d', '--wait', ...servers.map(({ name }) => name)],
      {
        env: portVariables(servers, state),
        timeoutMs: 600_000,
        onLine: log,
      },
    );
  },

  async stop(_servers, { data, log }) {
    log('docker compose stops the containers');
    await docker(['compose', '-p', uniqueName, 'down', ...(data ? ['--volumes'] : [])], {
      timeoutMs: 120_000,
    });
  },
};

function portVariables(servers: readonly Server[], state: State): Record<string, string> {
  const entries = servers.flatMap((server) =>
    Object.entries(server.composePorts).map(([port, variable]) => [
      variable,
      String(state.servers[server.name]?.ports[port]),
    ]),
  );
  return Object.fromEntries(entries) as Record<string, string>;
}

function docker(
  args: readonly string[],
  options: { env?: Record<string, string>; timeoutMs: number; onLine?: Log },
): Promise<string> {
  return run('docker', args, { folder: root, inheritEnvironment: true, ...options });
}
