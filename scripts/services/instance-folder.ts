import { chmod, lstat, mkdir, rm, rmdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stateFolder, uniqueName } from './checkout.js';
import { ServicesError } from './errors.js';
import { giveTo } from './files.js';
import { run } from './processes.js';
import type { Instance, Owner, Server } from './server.js';

/** For what the servers' user cannot reach in the checkout. Others may pass through a parent, never look around. */
const outside = join('/var/tmp', `${uniqueName}-${process.getuid?.()}`);
const PARENT_MODE = 0o711;

const isRoot = (): boolean => process.getuid?.() === 0;

/** Every place where this checkout can have put a server, whether or not a state file remembers it. */
export const placesOf = ({ name }: Server): string[] => [
  join(stateFolder, name),
  join(outside, name),
];

/** Whom root starts a server as: the owner of the data when there are any, else the package's system user. */
export async function ownerOf(
  server: Server,
  folder: string | undefined,
): Promise<Owner | undefined> {
  if (!isRoot()) return undefined;
  const existing = folder && (await stat(folder).catch(() => undefined));
  if (existing && existing.uid !== 0) return { uid: existing.uid, gid: existing.gid };
  const user = server.debian.systemUser;
  const id = async (flag: string): Promise<number> =>
    Number(await run('id', [flag, user], { folder: '/' }));
  return { uid: await id('-u'), gid: await id('-g') };
}

/** In the checkout where the server's user can reach it; a checkout in a root-only folder is common. */
export async function placeFor(server: Server, owner: Owner | undefined): Promise<string> {
  await makeFolder(stateFolder, PARENT_MODE, undefined);
  const reachable = await run('test', ['-x', stateFolder], { folder: '/', owner }).then(
    () => true,
    () => false,
  );
  return join(reachable ? stateFolder : outside, server.name);
}

/** Makes the folder, or checks that an existing one is ours: anybody may create names in /var/tmp. */
export async function prepareFolder(
  { folder, owner }: Instance,
  { empty }: { empty: boolean },
): Promise<void> {
  await makeFolder(dirname(folder), PARENT_MODE, undefined);
  if (empty) await rm(folder, { recursive: true, force: true });
  await makeFolder(folder, 0o700, owner);
}

export async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  if (dirname(folder) === outside) await rmdir(outside).catch(() => {}); // not empty yet, or never made
}

async function makeFolder(folder: string, mode: number, owner: Owner | undefined): Promise<void> {
  try {
    await mkdir(folder);
    await chmod(folder, mode); // mkdir's own mode would be subject to the umask
    await giveTo(folder, owner);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    await checkOwner(folder, owner);
  }
}

async function checkOwner(folder: string, owner: Owner | undefined): Promise<void> {
  const found = await lstat(folder);
  const trusted = [owner?.uid ?? process.getuid?.()];
  if (isRoot()) trusted.push((await stat(dirname(folder))).uid);
  const writableByOthers = (found.mode & 0o022) !== 0;
  if (found.isDirectory() && trusted.includes(found.uid) && !writableByOthers) return;
  throw new ServicesError(
    `${folder} belongs to another user, or others may write to it. Run this as its owner, or remove it and try again.`,
  );
}
