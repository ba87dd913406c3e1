import { createServer, connect, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rm } from 'node:fs/promises';
import { uniqueName } from './checkout.js';
import type { Log } from './server.js';

/**
 * One at a time per checkout. The lock is a listening socket instead of a file with a process number in it: the
 * kernel gives it to one process only and takes it back when that process ends, however it ends, so that a stale
 * lock cannot exist. On Linux its name is an abstract one, which leaves nothing on the disk.
 */
const address =
  process.platform === 'linux'
    ? `\0${uniqueName}`
    : process.platform === 'win32'
      ? `\\\\?\\pipe\\${uniqueName}`
      : join(tmpdir(), `${uniqueName}.lock`);

export async function withLock<T>(log: Log, work: () => Promise<T>): Promise<T> {
  let told = false;
  let lock = await tryLock();
  while (lock === undefined) {
    await holderGone((holder) => {
      if (!told) log(`waiting for another services command of this checkout (process ${holder})`);
      told = true;
    });
    lock = await tryLock();
  }
  try {
    return await work();
  } finally {
    lock.close();
    lock.closeWaiting();
  }
}

type Held = Server & { closeWaiting(): void };

function tryLock(): Promise<Held | undefined> {
  const waiting = new Set<{ destroy(): void }>();
  const server = createServer((socket) => {
    waiting.add(socket);
    socket.on('error', () => {}).on('close', () => waiting.delete(socket));
    socket.write(String(process.pid));
  });
  const closeWaiting = (): void => waiting.forEach((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(error);
    });
    server.listen(address, () => resolve(Object.assign(server, { closeWaiting })));
  });
}

/** Resolves when the holder has let go: the connection to it ends with the lock. */
async function holderGone(tell: (holder: string) => void): Promise<void> {
  const refused = await new Promise<boolean>((resolve) => {
    const socket = connect(address);
    socket.on('data', (holder) => tell(holder.toString()));
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
    socket.once('close', () => resolve(false));
  });
  // Only where the address is a file: it outlives a killed holder, and nobody listens on it.
  if (refused && !address.startsWith('\0')) await rm(address, { force: true });
}
