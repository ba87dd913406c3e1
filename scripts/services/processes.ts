import { spawn } from 'node:child_process';
import { open, readdir, readFile, readlink, rename } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { ServicesError } from './errors.js';
import { giveTo } from './files.js';
import type { Launched, Owner } from './server.js';

interface Place {
  /** Working directory. */
  folder: string;
  /** As whom, when not as ourselves. */
  owner?: Owner | undefined;
  env?: Record<string, string> | undefined;
}

export interface RunOptions extends Place {
  input?: string;
  timeoutMs?: number;
  /** For the user's own tools, which need his settings. */
  inheritEnvironment?: boolean;
  /** Receives what it prints while it runs. */
  onLine?: (line: string) => void;
}

/**
 * Nothing of the caller's environment reaches a server: a stray PGDATA or RABBITMQ_NODENAME would bend it, and so
 * would another Erlang in the PATH.
 */
const environment = (env: Record<string, string> = {}): Record<string, string> => ({
  PATH: '/usr/bin:/bin:/usr/sbin:/sbin',
  LANG: 'C.UTF-8',
  ...env,
});

/** Runs a program to its end. Throws with the end of what it printed when it fails. */
export async function run(
  program: string,
  args: readonly string[],
  place: RunOptions,
): Promise<string> {
  const child = spawn(program, args, {
    cwd: place.folder,
    env: place.inheritEnvironment ? { ...process.env, ...place.env } : environment(place.env),
    timeout: place.timeoutMs ?? 120_000,
    ...place.owner,
  });
  let output = '';
  const collect = (chunk: Buffer): void => void (output += chunk.toString());
  child.stdout.on('data', collect);
  child.stderr.on('data', collect);
  if (place.onLine) createInterface(child.stdout).on('line', place.onLine);
  child.stdin.on('error', () => {}); // it ended without reading; its exit code says why
  child.stdin.end(place.input ?? '');
  const end = await new Promise<number | string | null>((resolve, reject) => {
    child.once('error', reject).once('close', (code, signal) => resolve(signal ?? code));
  });
  if (end === 0) return output;
  throw new ServicesError(`${[program, ...args].join(' ')} failed (${end}):\n${lastLines(output)}`);
}

/** Starts a program that outlives this one: its own session, its output in a file. */
export async function launch(
  program: string,
  args: readonly string[],
  place: Place & { logFile: string },
): Promise<Launched> {
  await rename(place.logFile, `${place.logFile}.old`).catch(() => {}); // there is none at the first start
  const log = await open(place.logFile, 'a', 0o600);
  try {
    await giveTo(place.logFile, place.owner);
    const child = spawn(program, args, {
      cwd: place.folder,
      env: environment(place.env),
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
      ...place.owner,
    });
    let ended = false;
    child.once('error', () => (ended = true)).once('exit', () => (ended = true));
    child.unref();
    return { logFile: place.logFile, ended: () => ended };
  } finally {
    await log.close();
  }
}

export const lastLines = (text: string, count = 15): string =>
  text.trimEnd().split('\n').slice(-count).join('\n');

interface Running {
  pid: number;
  parent: number;
}

/**
 * The processes of these names that live in a folder. A process number proves nothing, it is given to somebody else
 * sooner or later; the working directory does, as nobody but the servers that we start there works in that folder.
 */
export async function processesIn(folder: string, names: readonly string[]): Promise<Running[]> {
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map((pid) => inspect(pid, folder, names).catch(() => undefined)),
  );
  return found.filter((one) => one !== undefined);
}

async function inspect(
  pid: string,
  folder: string,
  names: readonly string[],
): Promise<Running | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  const name = stat.slice(stat.indexOf('(') + 1, stat.lastIndexOf(')'));
  if (!names.includes(name)) return undefined;
  // " (deleted)" is appended when somebody has removed the folder under a running server.
  const cwd = (await readlink(`/proc/${pid}/cwd`)).replace(/ \(deleted\)$/, '');
  if (cwd !== folder && !cwd.startsWith(`${folder}/`)) return undefined;
  return { pid: Number(pid), parent: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) };
}

/** Asks, waits, and kills what has not gone by then. Returns whether there was anything to stop. */
export async function stopProcesses(
  folder: string,
  names: readonly string[],
  signal: NodeJS.Signals,
): Promise<boolean> {
  let stopped = false;
  for (const name of names) stopped = (await stopNamed(folder, name, signal)) || stopped;
  return stopped;
}

async function stopNamed(folder: string, name: string, signal: NodeJS.Signals): Promise<boolean> {
  let running = await processesIn(folder, [name]);
  if (running.length === 0) return false;
  const pids = new Set(running.map(({ pid }) => pid));
  // Workers belong to their main process, which tells them; those left by a killed one are asked themselves.
  for (const { pid, parent } of running) if (!pids.has(parent)) send(pid, signal);
  const deadline = Date.now() + 20_000;
  while (running.length > 0) {
    await sleep(50);
    running = await processesIn(folder, [name]);
    if (Date.now() > deadline) for (const { pid } of running) send(pid, 'SIGKILL');
  }
  return true;
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ESRCH') return;
    throw new ServicesError(
      `Process ${pid} is a server of this checkout but belongs to another user (${code}). Stop it as that user: npm run services -- down`,
    );
  }
}
