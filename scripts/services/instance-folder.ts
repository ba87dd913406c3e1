import { lstat, mkdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stateFolder, uniqueName } from './checkout.js';
import { ServicesError } from './errors.js';
import { giveTo } from './files.js';
import { run } from './processes.js';
import type { Instance, Owner, Server } from './server.js';
import { ensureStateFolder } from './state.js';

const isRoot = (): boolean => process.getuid?.() === 0;

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
export async function folderOf(server: Server, owner: Owner | undefined): Promise<string> {
  ensureStateFolder();
  const reachable = await run('test', ['-x', stateFolder], { folder: '/', owner }).then(
    () => true,
    () => false,
  );
  const outside = join('/var/tmp', `${uniqueName}-${process.getuid?.()}`);
  return join(reachable ? stateFolder : outside, server.name);
}

/** Makes the folder, or checks that an existing one is ours: anybody may create names in /var/tmp. */
export async function prepareFolder(
  { folder, owner }: Instance,
  { empty }: { empty: boolean },
): Promise<void> {
  if (empty) await rm(folder, { recursive: true, force: true });
  await makeFolder(dirname(folder), 0o711, undefined);
  await makeFolder(folder, 0o700, owner);
}

async function makeFolder(folder: string, mode: number, owner: Owner | undefined): Promise<void> {
  const made = await mkdir(folder, { mode }).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'EEXIST') return false;
      throw error;
    },
  );
  if (made) return giveTo(folder, owner);
  const found = await lstat(folder);
  const expected = [owner?.uid ?? process.getuid?.()];
  if (isRoot()) expected.push((await stat(dirname(folder))).uid);
  if (found.isDirectory() && expected.includes(found.uid) && (found.mode & 0o022) === 0) return;
  throw new ServicesError(
    `${folder} exists and is not a private folder of this user. Look at it, remove it, and try again.`,
  );
}
