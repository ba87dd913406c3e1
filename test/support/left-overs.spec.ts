import { dropBrokerLeftOvers } from './broker-admin.js';
import { ManagementApi } from './management-api.js';
import { withAdmin } from './postgres-admin.js';
import { temporaryName } from './names.js';
import { server } from './servers.js';
import { dropLeftOvers } from './template-database.js';
import { useCleanup } from './index.js';

const cleanup = useCleanup('each');
const twoHoursAgo = Math.floor(Date.now() / 1000) - 7200;
const fresh = temporaryName();
const old = fresh.replace(/\d{10}/, String(twoHoursAgo));

it('drops databases and unused templates of crashed runs, and spares those in use', async () => {
  const oldTemplate = `test_template_${twoHoursAgo}`;
  await withAdmin(async (admin) => {
    for (const name of [fresh, old, oldTemplate]) {
      await admin.query(`CREATE DATABASE ${name}`);
      cleanup.defer(() =>
        withAdmin((other) => other.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)),
      );
    }
    await admin.query(
      `ALTER DATABASE ${oldTemplate} WITH IS_TEMPLATE true ALLOW_CONNECTIONS false`,
    );
    await admin.query(`COMMENT ON DATABASE ${oldTemplate} IS 'used 2026-01-01T00:00:00.000Z'`);

    await dropLeftOvers(admin);

    const { rows } = await admin.query<{ name: string }>('SELECT datname AS name FROM pg_database');
    const names = rows.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining([fresh, server('templateDatabase')]));
    expect(names).not.toContain(old);
    expect(names).not.toContain(oldTemplate);
  });
});

it('drops vhosts and users of crashed runs, and spares those in use', async () => {
  const api = new ManagementApi(server('rabbitmqManagementUrl'));
  for (const name of [fresh, old]) {
    await api.put(`/vhosts/${name}`, {});
    await api.put(`/users/${name}`, { password: name, tags: '' });
    cleanup.defer(() => api.delete(`/vhosts/${name}`));
    cleanup.defer(() => api.delete(`/users/${name}`));
  }

  await dropBrokerLeftOvers(server('rabbitmqManagementUrl'));

  for (const kind of ['vhosts', 'users']) {
    const names = (await api.get<{ name: string }[]>(`/${kind}`)).map(({ name }) => name);
    expect(names).toContain(fresh);
    expect(names).not.toContain(old);
  }
});
