import { createServer } from 'node:net';
import { hash } from './checkout.js';
import { ServicesError } from './errors.js';

// Below the range from which the kernel takes the ports of outgoing connections: one of those could hold a
// remembered port at the moment when a server is started again.
const FIRST = 20_000;
const COUNT = 12_000;

export type Ports = Record<string, number>;

/**
 * Keeps the remembered ports that are free and chooses others for the rest, none of them in `taken`. Each checkout
 * starts its search elsewhere, so that two that start at the same moment do not choose the same.
 */
export async function choosePorts(
  names: readonly string[],
  remembered: Readonly<Ports>,
  taken: ReadonlySet<number>,
): Promise<Ports> {
  const chosen: Ports = {};
  for (const name of names) {
    const port = remembered[name];
    const avoid = new Set([...taken, ...Object.values(remembered), ...Object.values(chosen)]);
    chosen[name] = port !== undefined && (await isFree(port)) ? port : await findFree(avoid);
  }
  return chosen;
}

async function findFree(avoid: ReadonlySet<number>): Promise<number> {
  const start = Number.parseInt(hash, 16) % COUNT;
  for (let offset = 0; offset < COUNT; offset++) {
    const port = FIRST + ((start + offset) % COUNT);
    if (!avoid.has(port) && (await isFree(port))) return port;
  }
  throw new ServicesError(
    `No free port from ${FIRST} to ${FIRST + COUNT - 1} on 127.0.0.1. Free one and try again.`,
  );
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
