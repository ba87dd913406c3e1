import { chownSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root, stateFolder } from './checkout.js';
import { ServicesError } from './errors.js';
import type { Ports } from './ports.js';
import type { Server, Urls } from './server.js';

const file = join(stateFolder, 'state.json');

export interface ServerState {
  way: 'compose' | 'packages';
  ports: Ports;
  user: string;
  password: string;
  /** Where a private instance keeps everything. */
  folder?: string;
  /** False until it has answered for the first time: what a killed first start left behind is thrown away. */
  initialised: boolean;
}

export interface State {
  checkout: string;
  servers: Record<string, ServerState>;
}

export const portsIn = (state: State): Set<number> =>
  new Set(Object.values(state.servers).flatMap(({ ports }) => Object.values(ports)));

export function urlsOf(server: Server, state: State): Urls | undefined {
  const known = state.servers[server.name];
  return known && server.urls(known);
}

/**
 * What this checkout remembers. A copied folder brings its original's memory along, which must not be used.
 * `lenient` takes another user's memory, which cannot be read, for none.
 */
export function readState({ lenient = false } = {}): State {
  const nothing: State = { checkout: root, servers: {} };
  try {
    const state = JSON.parse(readFileSync(file, 'utf8')) as State;
    return state.checkout === root ? state : nothing;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === 'ENOENT' || error instanceof SyntaxError || lenient) return nothing;
    throw unusable(error);
  }
}

/** Replaces the file in one step, so that a reader or a crash never sees half of it. */
export function writeState(state: State): void {
  try {
    mkdirSync(stateFolder, { recursive: true });
    const next = `${file}.${process.pid}`;
    writeFileSync(next, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 });
    if (process.getuid?.() === 0) {
      const { uid, gid } = statSync(stateFolder); // root in somebody's checkout must not lock him out
      chownSync(next, uid, gid);
    }
    renameSync(next, file);
  } catch (error) {
    throw unusable(error);
  }
}

function unusable(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') return error;
  return new ServicesError(
    `${stateFolder} cannot be used by this user (${code}). Run this as the user who made it. ` +
      `To start over, as that user or as root: npm run services -- down --data, then remove the folder.`,
  );
}
