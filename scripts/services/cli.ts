import { down, reset, ServicesError, status, up, type ServiceUrls } from './index.js';

const USAGE = `Usage: npm run services -- <command>

  up            make sure that PostgreSQL and RabbitMQ answer, starting them when necessary
  down          stop what up started; --data deletes its data as well
  status        for each server: how it was found, where, and whether it answers
  reset         stop, delete the data, start again
  env           like up, and print the URLs for a shell: eval "$(npm run -s services -- env)"

docs/services.md says which servers are used and what is kept where.
`;

/** Progress goes to stderr, so that stdout is the result and nothing else. */
const log = (line: string): void => console.error(line);

const commands: Record<string, (flags: readonly string[]) => Promise<void>> = {
  async up() {
    await up({ log });
    await printStatus();
  },
  async down(flags) {
    await down({ log, data: flags.includes('--data') });
    await printStatus();
  },
  status: printStatus,
  async reset() {
    await reset({ log });
    await printStatus();
  },
  async env() {
    printEnvironment(await up({ log }));
  },
};

async function printStatus(): Promise<void> {
  for (const { title, way, url, up } of await status()) {
    console.log(
      [title.padEnd(10), (up ? 'up' : 'down').padEnd(4), way.padEnd(11), url ?? '']
        .join('  ')
        .trimEnd(),
    );
  }
}

function printEnvironment(urls: ServiceUrls): void {
  const variables = {
    DATABASE_URL: urls.databaseUrl,
    RABBITMQ_URL: urls.rabbitmqUrl,
    RABBITMQ_MANAGEMENT_URL: urls.rabbitmqManagementUrl,
  };
  const quote = (value: string): string => `'${value.replaceAll("'", String.raw`'\''`)}'`;
  for (const [name, value] of Object.entries(variables))
    console.log(`export ${name}=${quote(value)}`);
}

async function main([verb = '', ...flags]: readonly string[]): Promise<number> {
  if (verb === '--help' || verb === '-h' || flags.includes('--help')) {
    console.log(USAGE);
    return 0;
  }
  const command = Object.hasOwn(commands, verb) ? commands[verb] : undefined;
  const unknown = flags.filter((flag) => !(verb === 'down' && flag === '--data'));
  if (!command || unknown.length > 0) {
    const complaint = command ? `Unknown option: ${unknown.join(' ')}` : `Unknown command: ${verb}`;
    console.error(verb ? `${complaint}\n\n${USAGE}` : USAGE);
    return 2;
  }
  try {
    await command(flags);
    return 0;
  } catch (error) {
    const ofTheSystem = error instanceof Error && 'code' in error; // "EACCES: permission denied, ..." says enough
    if (!(error instanceof ServicesError) && !ofTheSystem) throw error;
    console.error(error.message);
    return 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
