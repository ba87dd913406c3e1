import { reasonOf, ServicesError } from './errors.js';
import type { Server, Urls } from './server.js';
import { urlsOf, type State } from './state.js';

/** The URLs of the servers that the environment names, each of which answers; it is an error when one does not. */
export async function fromEnvironment(
  servers: readonly Server[],
  state: State,
): Promise<Map<string, Urls>> {
  const given = new Map<string, Urls>();
  await Promise.all(
    servers.map(async (server) => {
      const urls = foreignUrls(server, state);
      if (!urls) return;
      const failure = await server.check(urls).then(() => undefined, reasonOf);
      if (failure !== undefined) throw unreachable(server, failure);
      given.set(server.name, urls);
    }),
  );
  return given;
}

/**
 * The environment's URLs when they name a server that is not ours. In a shell with the output of `services env` they
 * name one that we may start again, which is no reason to leave it alone.
 */
export function foreignUrls(server: Server, state: State): Urls | undefined {
  const given = server.fromEnvironment(process.env);
  const ours = urlsOf(server, state);
  return given && ours && mainUrl(given) === mainUrl(ours) ? undefined : given;
}

/** The one that the server's variable holds; others are derived from it. */
export const mainUrl = (urls: Urls): string => Object.values(urls)[0]!;

const unreachable = (server: Server, failure: string): ServicesError =>
  new ServicesError(
    `${failure}\n${server.variable} is set in the environment: start that server, correct the URL, ` +
      `or unset it to have one started for you.`,
  );
