import { createHash } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const NAME = 'nestjs-idempotent-consumer';

/** The checkout that these scripts belong to, whatever the working directory is. */
export const root = realpathSync(fileURLToPath(new URL('../..', import.meta.url)));

/** Two checkouts on one machine have two of these. */
export const hash = createHash('sha256').update(root).digest('hex').slice(0, 10);

/** Names things outside the checkout: a compose project, a folder in /var/tmp, a lock. */
export const uniqueName = `${NAME}-${hash}`;

export const stateFolder = join(root, '.services');
