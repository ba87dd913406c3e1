import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { dirname, join } from 'node:path';
import { untilItAnswers } from '../../scripts/services/answers.js';
import { ownerOf, placeFor, prepareFolder } from '../../scripts/services/instance-folder.js';
import { postgres } from '../../scripts/services/postgres.js';
import { stopProcesses } from '../../scripts/services/processes.js';
import type { Instance } from '../../scripts/services/server.js';
import { freePort } from './free-port.js';
import { temporaryName } from './names.js';
import { removalOf } from './own-broker-ways.js';
import { removeWhenThisProcessEnds } from './own-broker.js';

/** Why a spec cannot have a PostgreSQL of its own. */
export async function ownPostgresObstacle(): Promise<string | undefined> {
  const programs = await postgres.debian.programs();
  return programs === undefined ? `it needs Debian's package ${postgres.debian.name}` : undefined;
}

/**
 * Starts a PostgreSQL of a spec's own, for faults that would hurt every spec on the shared one. It is gone
 * with its data when the spec has ended, also when the test process is killed.
 *
 * @example
 * const server = cleanup.use(await startOwnPostgres());
 * const db = cleanup.use(await createTestDatabase({ serverUrl: server.url }));
 */
export async function startOwnPostgres(): Promise<OwnPostgres> {
  const programs = await postgres.debian.programs();
  if (programs === undefined) throw new Error(await ownPostgresObstacle());
  const owner = await ownerOf(postgres, undefined);
  // Beside the shared server and never inside its folder, by which `services down` knows what to stop.
  const folder = join(dirname(await placeFor(postgres, owner)), temporaryName());
  const instance: Instance = {
    folder,
    programs,
    owner,
    ports: { postgres: await freePort() },
    user: 'app',
    password: randomBytes(12).toString('hex'),
  };
  await prepareFolder(instance, { empty: true });
  const server = new OwnPostgres(instance);
  try {
    await postgres.debian.initialise(instance);
    await server.start();
    return server;
  } catch (error) {
    await server[Symbol.asyncDispose]();
    throw error;
  }
}

export class OwnPostgres implements AsyncDisposable {
  /** Of a superuser. */
  readonly url: string;
  private readonly remover: ChildProcess;

  constructor(private readonly instance: Instance) {
    this.url = postgres.urls(instance).databaseUrl!;
    this.remover = removeWhenThisProcessEnds({ removal: removalOf(instance.folder) });
  }

  /** Starts the stopped server, with its data, at the same port; returns when it answers. */
  async start(): Promise<void> {
    const { ended, logFile } = await postgres.debian.launch(this.instance);
    const failure = await untilItAnswers(
      postgres,
      { databaseUrl: this.url },
      { timeoutMs: 60_000, hopeless: ended, log: () => undefined, waitingFor: '' },
    );
    if (failure !== undefined) throw new Error(`${failure}\nIts log is ${logFile}.`);
  }

  /** Stops the server: SIGINT rolls back what is open, SIGKILL is a crash. */
  async stop(signal: 'SIGINT' | 'SIGKILL'): Promise<void> {
    await stopProcesses(this.instance.folder, ['postgres'], signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const removed = once(this.remover, 'close');
    this.remover.stdin?.end();
    await removed;
  }
}
