import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { projectRoot, sourcesIn } from './project.js';

const built = ['dist/src/main.js', 'dist/src/migrate.js'];
const configuration = ['nest-cli.json', 'tsconfig.json', 'tsconfig.build.json'];

/**
 * Builds the service when a source is newer than the build. End-to-end specs run what is deployed, never
 * a stale copy of it. TEST_SKIP_BUILD=1 takes the build as it is.
 */
export async function ensureBuilt(log: (line: string) => void): Promise<void> {
  if (process.env.TEST_SKIP_BUILD === '1' || !(await isStale())) return;
  log('Building the service, because its sources changed …');
  const build = spawn('npm', ['run', '--silent', 'build'], {
    cwd: projectRoot,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [build.stdout, build.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  const [code] = (await once(build, 'close')) as [number | null];
  if (code !== 0) throw new Error(buildFailure(output));
}

function buildFailure(output: string): string {
  return `The service does not build ("npm run build"; TEST_SKIP_BUILD=1 tests the last build):\n${output}`;
}

async function isStale(): Promise<boolean> {
  const sources = [
    ...(await sourcesIn('src')),
    ...(await sourcesIn('migrations')),
    ...configuration.map((file) => projectRoot + file),
  ];
  const oldestBuilt = Math.min(
    ...(await Promise.all(built.map((file) => changedAt(projectRoot + file)))),
  );
  const newestSource = Math.max(...(await Promise.all(sources.map(changedAt))));
  return newestSource > oldestBuilt;
}

/** When the file was written; 0 when there is none. */
async function changedAt(file: string): Promise<number> {
  try {
    return (await stat(file)).mtimeMs;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 0;
    throw error;
  }
}
