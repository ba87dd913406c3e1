import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { uniqueName } from './checkout.js';
import { giveTo } from './files.js';
import type { Instance } from './server.js';

/** Written before every start: ports can have moved, and an edit by hand should not survive unnoticed. */
export async function writeConfiguration(instance: Instance): Promise<void> {
  const { folder, owner, ports, user, password } = instance;
  const files = {
    'rabbitmq.conf': `
      listeners.tcp.local = 127.0.0.1:${ports.amqp}
      management.tcp.ip = 127.0.0.1
      management.tcp.port = ${ports.management}
      default_user = ${user}
      default_pass = ${password}
      default_user_tags.administrator = true
      vm_memory_high_watermark.relative = 0.4
      disk_free_limit.absolute = 100MB
      log.console = false
      log.file = node.log
      log.file.level = info
      log.file.rotation.size = 10485760
      log.file.rotation.count = 1`.replaceAll(/^\s+/gm, ''),
    'advanced.config': '[].',
    'rabbitmq-env.conf': '',
    enabled_plugins: '[rabbitmq_management].',
  };
  for (const [name, content] of Object.entries(files)) {
    const file = join(folder, name);
    await writeFile(file, `${content}\n`, { mode: 0o600 });
    await giveTo(file, owner);
  }
  const moreFiles = join(folder, 'conf.d');
  await mkdir(moreFiles, { recursive: true });
  await giveTo(moreFiles, owner);
}

/**
 * Names every path and port, so that nothing of the machine's own node is read or used: not /etc/rabbitmq, not its
 * cookie, not its epmd on port 4369.
 */
export function nodeEnvironment({ folder, ports }: Instance): Record<string, string> {
  return {
    HOME: folder, // where Erlang keeps its cookie
    ERL_EPMD_ADDRESS: '127.0.0.1',
    ERL_EPMD_PORT: String(ports.epmd),
    RABBITMQ_NODENAME: `${uniqueName}@localhost`,
    RABBITMQ_DIST_PORT: String(ports.distribution),
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
    RABBITMQ_CONF_ENV_FILE: join(folder, 'rabbitmq-env.conf'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_CONFIG_FILES: join(folder, 'conf.d'),
    RABBITMQ_ADVANCED_CONFIG_FILE: join(folder, 'advanced.config'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_SCHEMA_DIR: join(folder, 'schema'),
    RABBITMQ_GENERATED_CONFIG_DIR: join(folder, 'config'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_PID_FILE: join(folder, 'node.pid'),
    // Makes its start script become the node instead of watching over it, so that SIGTERM reaches the node.
    RUNNING_UNDER_SYSTEMD: 'true',
  };
}
