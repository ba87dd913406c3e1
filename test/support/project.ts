import { readdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

/** The checkout, with a slash at its end. */
export const projectRoot = fileURLToPath(new URL('../../', import.meta.url));

/** The TypeScript sources that a build reads from a folder of the checkout, sorted; none if it is missing. */
export async function sourcesIn(folder: string): Promise<string[]> {
  const entries = await readdir(projectRoot + folder, {
    recursive: true,
    withFileTypes: true,
  }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  return entries
    .filter((entry) => entry.isFile() && /(?<!\.spec)\.ts$/.test(entry.name))
    .map((entry) => `${entry.parentPath}/${entry.name}`)
    .sort();
}
