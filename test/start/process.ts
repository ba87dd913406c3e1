import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const main = fileURLToPath(new URL('../../dist/src/main.js', import.meta.url));

export interface Ended {
  code: number | null;
  output: string;
}

/**
 * Runs the built service until it ends by itself, with nothing but this environment, in a folder of the
 * test's choice: where there is a `.env`, or none.
 */
export async function runToEnd(
  env: Record<string, string>,
  folder = '/',
  onOutput: (output: string, kill: (signal: NodeJS.Signals) => void) => void = () => undefined,
): Promise<Ended> {
  const child = spawn(process.execPath, [main], { cwd: folder, env, timeout: 25_000 });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      onOutput(output, (signal) => child.kill(signal));
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}
