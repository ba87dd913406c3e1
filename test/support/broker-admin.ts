import { eventually } from './eventually.js';
import { ManagementApi } from './management-api.js';
import { isLeftOver } from './names.js';

export const segment = encodeURIComponent;

/**
 * Creates a vhost, and a user of the same name who can use nothing else. Having a user of its own is what
 * makes the connections of one spec file known and closable at once: RabbitMQ tracks connections by user
 * as they open, while its statistics lag by seconds.
 */
export async function createVhost(
  api: ManagementApi,
  name: string,
  password: string,
  administrator: string,
): Promise<void> {
  await api.put(`/vhosts/${name}`, {});
  await api.put(`/users/${name}`, { password, tags: '' });
  const everything = { configure: '.*', write: '.*', read: '.*' };
  for (const user of [name, administrator]) {
    await api.put(`/permissions/${name}/${segment(user)}`, everything);
  }
}

/** Deletes both, with everything in the vhost and every connection to it. */
export async function deleteVhost(api: ManagementApi, name: string): Promise<void> {
  // Refused with 500 while a queue of a node that has just been restarted is choosing its leader.
  await eventually(() => api.delete(`/vhosts/${name}`), { timeoutMs: 20_000 });
  await api.delete(`/users/${name}`);
}

/** Deletes the vhosts of crashed runs. */
export async function dropBrokerLeftOvers(managementUrl: string): Promise<void> {
  const api = new ManagementApi(managementUrl);
  const vhosts = await api.get<{ name: string }[]>('/vhosts?columns=name');
  for (const { name } of vhosts) if (isLeftOver(name)) await deleteVhost(api, name);
}
