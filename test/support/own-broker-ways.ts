import { randomBytes } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { ownerOf, placeFor, prepareFolder } from '../../scripts/services/instance-folder.js';
import { launch, processesIn, run, stopProcesses } from '../../scripts/services/processes.js';
import { nodeEnvironment, writeConfiguration } from '../../scripts/services/rabbitmq-node.js';
import { rabbitmq } from '../../scripts/services/rabbitmq.js';
import type { Access, Instance, Launched } from '../../scripts/services/server.js';
import { freePort } from './free-port.js';
import { temporaryName } from './names.js';
import { projectRoot } from './project.js';

/** How a node of a spec's own is run, by one of the ways in which the shared servers can come. */
export interface BrokerWay {
  readonly access: Access;
  /** Starts the node and returns at once. */
  launch(): Promise<Launched>;
  stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  control(args: readonly string[]): Promise<string>;
  /** A shell script, and its `$0`, that ends the node and deletes all it has left. */
  readonly removal: readonly [script: string, subject: string];
}

const servers = ['rabbitmq-server', 'beam.smp'];

/** `erlangArguments` override the node's configuration. */
export async function chooseWay(erlangArguments: string): Promise<BrokerWay> {
  const programs = await rabbitmq.debian.programs();
  if (programs !== undefined) return fromPackages(programs, erlangArguments);
  const works = await docker(['info']).then(
    () => true,
    () => false,
  );
  if (works) return inContainer(erlangArguments);
  throw new Error(
    'This spec breaks a RabbitMQ of its own, wherever the shared one is. It needs Docker, or ' +
      `Debian's package: sudo apt-get install ${rabbitmq.debian.name} (docs/services.md).`,
  );
}

async function fromPackages(programs: string, erlangArguments: string): Promise<BrokerWay> {
  const owner = await ownerOf(rabbitmq, undefined);
  // Beside the shared server and never inside its folder, by which `services down` knows what to stop.
  const folder = join(dirname(await placeFor(rabbitmq, owner)), temporaryName());
  const instance: Instance = { ...(await newAccess(rabbitmq.ports)), folder, programs, owner };
  await prepareFolder(instance, { empty: true });
  await writeConfiguration(instance);
  const env = nodeEnvironment(instance);
  env.RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS += ` ${erlangArguments}`;
  const place = { folder, owner, env };
  return {
    access: instance,
    async launch() {
      // It outlives the node that asked for it first, so a restart finds it.
      if ((await processesIn(folder, ['epmd'])).length === 0) {
        const epmd = await realpath('/usr/bin/epmd');
        const args = ['-address', '127.0.0.1', '-port', String(instance.ports.epmd)];
        await launch(epmd, args, { ...place, logFile: join(folder, 'epmd.log') });
      }
      const logFile = join(folder, 'rabbitmq.log');
      return launch(join(programs, 'rabbitmq-server'), [], { ...place, logFile });
    },
    stop: async (signal) => void (await stopProcesses(folder, servers, signal)),
    control: (args) => run(join(programs, 'rabbitmqctl'), args, place),
    removal: removalOf(folder),
  };
}

/** Of a server that lives in a folder. */
export function removalOf(folder: string): BrokerWay['removal'] {
  return [
    `for process in /proc/[0-9]*; do
       case "$(readlink $process/cwd)/" in "$0"/*) kill -9 "\${process#/proc/}";; esac
     done
     until rm -rf "$0"; do sleep 0.1; done`,
    folder,
  ];
}

/** The image is the one in docker-compose.yml. */
async function inContainer(erlangArguments: string): Promise<BrokerWay> {
  const access = await newAccess(['amqp', 'management']);
  const name = temporaryName();
  const services = await docker(['compose', 'config', '--format', 'json']);
  const { image } = (JSON.parse(services) as { services: { rabbitmq: { image: string } } }).services
    .rabbitmq;
  const options = [
    `--name=${name}`,
    `--hostname=${name}`,
    `--publish=127.0.0.1:${access.ports.amqp}:5672`,
    `--publish=127.0.0.1:${access.ports.management}:15672`,
    `--env=RABBITMQ_DEFAULT_USER=${access.user}`,
    `--env=RABBITMQ_DEFAULT_PASS=${access.password}`,
    `--env=RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=${erlangArguments}`,
  ];
  await docker(['create', ...options, image]);
  return {
    access,
    async launch() {
      await docker(['start', name]);
      return { logFile: `docker logs ${name}`, ended: () => false };
    },
    stop: async (signal) => void (await docker(['stop', '--signal', signal, name])),
    control: (args) => docker(['exec', name, 'rabbitmqctl', ...args]),
    removal: ['docker rm --force --volumes "$0"', name],
  };
}

const docker = (args: readonly string[]): Promise<string> =>
  run('docker', args, { folder: projectRoot, inheritEnvironment: true, timeoutMs: 300_000 });

async function newAccess(names: readonly string[]): Promise<Access> {
  const ports: Record<string, number> = {};
  for (const name of names) ports[name] = await freePort();
  return { ports, user: 'app', password: randomBytes(12).toString('hex') };
}
