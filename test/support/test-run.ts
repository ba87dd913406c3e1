import type { Client } from 'pg';
import { up } from '../../scripts/services/index.js';
import { dropBrokerLeftOvers } from './broker-admin.js';
import { ensureBuilt } from './build.js';
import { withAdmin } from './postgres-admin.js';
import { publishServers } from './servers.js';
import { dropLeftOvers, prepareTemplate } from './template-database.js';

/** Taken by one test run at a time while it prepares, on whichever server the runs share. */
const preparationLock = 7_203_114_965;

/** Starts the servers, builds the service and prepares the template database; once, before any spec. */
export async function prepareTestRun(): Promise<void> {
  const { databaseUrl, rabbitmqUrl, rabbitmqManagementUrl } = await startServers();
  const templateDatabase = await withAdmin(async (admin) => {
    await lock(admin);
    await ensureBuilt(log);
    const template = await prepareTemplate(admin, databaseUrl);
    await dropLeftOvers(admin);
    return template;
  }, databaseUrl);
  await dropBrokerLeftOvers(rabbitmqManagementUrl);
  publishServers({ databaseUrl, rabbitmqUrl, rabbitmqManagementUrl, templateDatabase });
}

async function startServers(): ReturnType<typeof up> {
  try {
    return await up({ log });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `${reason}\n\nThe tests run against real servers. This starts them: npm run services -- up`,
      { cause: error },
    );
  }
}

/** Held until the session ends, which withAdmin sees to. */
async function lock(admin: Client): Promise<void> {
  await admin.query('SELECT pg_advisory_lock($1)', [preparationLock]);
}

function log(line: string): void {
  process.stderr.write(`${line}\n`);
}
