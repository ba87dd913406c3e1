import { join } from 'node:path';
import { root } from './checkout.js';
import { exists } from './files.js';
import { run } from './processes.js';
import type { DebianPackage, Log } from './server.js';

type Wanted = Pick<DebianPackage, 'name' | 'minimum'>;

const names = (wanted: readonly Wanted[]): string => wanted.map(({ name }) => name).join(' ');

/** Why packages cannot be installed here without asking somebody. */
export async function installObstacle(wanted: readonly Wanted[]): Promise<string | undefined> {
  if (!(await exists('/usr/bin/apt-get'))) return 'only on Debian and Ubuntu.';
  if (await becomeRoot()) return undefined;
  return (
    `${names(wanted)} is missing, or older than supported, and sudo asks for a password. ` +
    `Run: sudo apt-get install ${names(wanted)}`
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

/** Installs them, and neither starts nor enables Debian's own servers. */
export async function install(wanted: readonly Wanted[], log: Log): Promise<void> {
  log(`installing ${names(wanted)} with apt-get; Debian's own servers are not started`);
  const script = join(root, 'scripts/services/install-packages.sh');
  const packages = wanted.map(({ name, minimum }) => `${name}:${minimum}`);
  const [program, ...args] = [...((await becomeRoot()) ?? []), 'sh', script, ...packages];
  const onLine = (line: string): void => {
    if (/^(Setting up|Fetched|Waiting)/.test(line)) log(line);
  };
  await run(program!, args, { folder: '/', timeoutMs: 900_000, onLine });
}
