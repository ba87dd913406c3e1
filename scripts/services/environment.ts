import { reasonOf, ServicesError } from './errors.js';
import type { Server, Urls } from './server.js';
import { readState, urlsOf } from './state.js';

/** The URLs of the servers that the environment names, each of which answers; it is an error when one does not. */
export async function fromEnvironment(servers: readonly Server[]): Promise<Map<string, Urls>> {
  const given = new Map<string, Urls>();
  await Promise.all(
    servers.map(async (server) => {
      const urls = server.fromEnvironment(process.env);
      if (!urls) return;
      const failure = await server.check(urls).then(() => undefined, reasonOf);
      if (failure === undefined) given.set(server.name, urls);
      else if (!isOurs(server, urls)) throw unreachable(server, failure);
    }),
  );
  return given;
}

/** In a shell with the output of `services env`, the variables name a server that we may start again. */
export function isOurs(server: Server, urls: Urls): boolean {
  const ours = urlsOf(server, readState());
  return ours !== undefined && mainUrl(ours) === mainUrl(urls);
}

/** The one that the server's variable holds; others are derived from it. */
export const mainUrl = (urls: Urls): string => Object.values(urls)[0]!;

const unreachable = (server: Server, failure: string): ServicesError =>
  new ServicesError(
    `${failure}\n${server.variable} is set in the environment: start that server, correct the URL, ` +
      `or unset it to have one started for you.`,
  );
