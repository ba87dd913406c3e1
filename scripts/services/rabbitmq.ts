import { readdir, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf, ServicesError } from './errors.js';
import { launch } from './processes.js';
import { nodeEnvironment, writeConfiguration } from './rabbitmq-node.js';
import type { DebianPackage, Instance, Server, Urls } from './server.js';
import { redact, urlFrom } from './url.js';
import { atLeast } from './versions.js';

const LIBRARIES = '/usr/lib/rabbitmq/lib';

export const rabbitmq: Server = {
  name: 'rabbitmq',
  title: 'RabbitMQ',
  variable: 'RABBITMQ_URL',
  ports: ['amqp', 'management', 'distribution', 'epmd'],
  composePorts: { amqp: 'RABBITMQ_PORT', management: 'RABBITMQ_MANAGEMENT_PORT' },
  fromEnvironment(env) {
    if (!env.RABBITMQ_URL) return undefined;
    const url = urlFrom('RABBITMQ_URL', env.RABBITMQ_URL, ['amqp', 'amqps']);
    const given = env.RABBITMQ_MANAGEMENT_URL;
    if (given) urlFrom('RABBITMQ_MANAGEMENT_URL', given, ['http', 'https']);
    return { rabbitmqUrl: env.RABBITMQ_URL, rabbitmqManagementUrl: given || managementOf(url) };
  },
  urls: ({ user, password, ports }) => ({
    rabbitmqUrl: `amqp://${user}:${password}@127.0.0.1:${ports.amqp}`,
    rabbitmqManagementUrl: `http://${user}:${password}@127.0.0.1:${ports.management}`,
  }),
  async check(urls) {
    await checkBroker(urls); // first, as its failure explains the other's
    await checkManagement(urls);
  },
  debian: {
    name: 'rabbitmq-server',
    minimum: '3.10',
    systemUser: 'rabbitmq',
    main: 'beam.smp',
    processes: ['rabbitmq-server', 'beam.smp', 'epmd'],
    stopSignal: 'SIGTERM',
    programs,
    initialise: async () => {}, // a node fills its own folder when it first starts
    launch: start,
  },
};

/** The management plugin's usual place beside a broker. */
function managementOf(broker: URL): string {
  const url = new URL(broker.protocol === 'amqps:' ? 'https://host:15671' : 'http://host:15672');
  url.hostname = broker.hostname;
  url.username = broker.username || 'guest';
  url.password = broker.password || 'guest';
  return url.href.replace(/\/$/, '');
}

async function checkBroker({ rabbitmqUrl = '' }: Urls): Promise<void> {
  const { connect } = await import('amqplib');
  try {
    const connection = await connect(rabbitmqUrl, { timeout: 5_000 });
    connection.on('error', () => {}); // a connection that breaks after the answer is of no interest
    await connection.close();
  } catch (error) {
    throw new ServicesError(
      `RabbitMQ does not answer at ${redact(rabbitmqUrl)}: ${reasonOf(error)}`,
    );
  }
}

async function checkManagement({ rabbitmqManagementUrl = '' }: Urls): Promise<void> {
  const url = new URL('/api/whoami', rabbitmqManagementUrl);
  const login = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  const authorization = `Basic ${Buffer.from(login).toString('base64')}`;
  url.username = url.password = '';
  const failure = await fetch(url, {
    headers: { authorization },
    signal: AbortSignal.timeout(5_000),
  }).then(
    (response) => (response.ok ? undefined : `HTTP ${response.status}`),
    (error: unknown) => reasonOf(error instanceof Error && error.cause ? error.cause : error),
  );
  if (failure === undefined) return;
  throw new ServicesError(
    `RabbitMQ's management plugin does not answer at ${redact(rabbitmqManagementUrl)}: ${failure}. ` +
      'Enable it (rabbitmq-plugins enable rabbitmq_management), or set RABBITMQ_MANAGEMENT_URL when it is elsewhere.',
  );
}

async function programs(): Promise<string | undefined> {
  const homes = await readdir(LIBRARIES).catch(() => []);
  const home = homes.find((name) =>
    atLeast(name.replace('rabbitmq_server-', ''), rabbitmq.debian.minimum),
  );
  return home && join(LIBRARIES, home, 'sbin');
}

async function start(instance: Instance): ReturnType<DebianPackage['launch']> {
  await writeConfiguration(instance);
  const { folder, owner } = instance;
  const env = nodeEnvironment(instance);
  // Started by us and not by the node: as a daemon it would leave the folder by which we recognise it.
  const epmd = await realpath('/usr/bin/epmd');
  const port = String(instance.ports.epmd);
  await launch(epmd, ['-address', '127.0.0.1', '-port', port], {
    folder,
    owner,
    env,
    logFile: join(folder, 'epmd.log'),
  });
  // Not /usr/sbin/rabbitmq-server: Debian's wrapper insists on being root or rabbitmq.
  return launch(join(instance.programs, 'rabbitmq-server'), [], {
    folder,
    owner,
    env,
    logFile: join(folder, 'rabbitmq.log'),
  });
}
