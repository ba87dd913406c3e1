import { Client } from 'pg';
import { server } from './servers.js';

/** Runs `work` on a connection to the server's own database, from which others are made and dropped. */
export async function withAdmin<T>(
  work: (admin: Client) => Promise<T>,
  databaseUrl = server('databaseUrl'),
): Promise<T> {
  const admin = new Client({ connectionString: databaseUrl, application_name: 'test-harness' });
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.end();
  }
}
