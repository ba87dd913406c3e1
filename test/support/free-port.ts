import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the range from which systems pick ports for outgoing connections. A port from that range can be
 * taken while its server is down, even by the very client that keeps dialling it: TCP then connects the
 * client to itself.
 */
const range = [20_000, 30_000] as const;

/** Makes the server listen on a loopback port that stays ours when it stops listening for a while. */
export async function listenOnFreePort(server: Server): Promise<number> {
  for (;;) {
    const port = randomInt(...range);
    try {
      await listenOn(server, port);
      return port;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}

/** Makes the server listen on this loopback port; throws when another one has it. */
export async function listenOn(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
}

/** A loopback port that nothing listens on at this moment. */
export async function freePort(): Promise<number> {
  const probe = createServer();
  const port = await listenOnFreePort(probe);
  probe.close();
  await once(probe, 'close');
  return port;
}
