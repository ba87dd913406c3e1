import { join } from 'node:path';
import { root } from './checkout.js';
import { reasonOf, ServicesError } from './errors.js';
import { exists } from './files.js';
import { run } from './processes.js';
import type { Log, Server } from './server.js';

const names = (servers: readonly Server[]): string =>
  servers.map(({ debian }) => debian.name).join(' ');

/** Why packages cannot be installed here without asking somebody. */
export async function installObstacle(servers: readonly Server[]): Promise<string | undefined> {
  if (!(await exists('/usr/bin/apt-get'))) return 'only on Debian and Ubuntu.';
  if (await becomeRoot()) return undefined;
  return (
    `${names(servers)} is missing, or older than supported, and sudo asks for a password. ` +
    `Run: sudo apt-get install ${names(servers)}`
  );
}

/** The command that makes root of us without a question, when there is one. */
async function becomeRoot(): Promise<string[] | undefined> {
  if (process.getuid?.() === 0) return [];
  const sudo = ['sudo', '-n'];
  return run('sudo', ['-n', 'true'], { folder: '/', timeoutMs: 5_000 }).then(
    () => sudo,
    () => undefined,
  );
}

export async function install(servers: readonly Server[], log: Log): Promise<void> {
  log(`installing ${names(servers)} with apt-get; Debian's own servers are not started`);
  const script = join(root, 'scripts/services/install-packages.sh');
  const wanted = servers.map(({ debian }) => `${debian.name}:${debian.minimum}`);
  const [program, ...args] = [...((await becomeRoot()) ?? []), 'sh', script, ...wanted];
  const variables = servers.map(({ variable }) => variable).join(' and ');
  const onLine = (line: string): void => {
    if (/^(Setting up|Fetched|Waiting)/.test(line)) log(line);
  };
  await run(program!, args, { folder: '/', timeoutMs: 900_000, onLine }).catch((error: unknown) => {
    throw new ServicesError(
      `${reasonOf(error)}\nWithout these packages: use Docker, or set ${variables} to servers that you have (docs/services.md).`,
    );
  });
}
