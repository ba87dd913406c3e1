/** Where the real servers are. Set by the global setup, which runs before Jest starts its workers. */
export interface TestServers {
  databaseUrl: string;
  rabbitmqUrl: string;
  rabbitmqManagementUrl: string;
  /** The database that has every migration applied; test databases are copies of it. */
  templateDatabase: string;
}

const variables = {
  databaseUrl: 'TEST_DATABASE_URL',
  rabbitmqUrl: 'TEST_RABBITMQ_URL',
  rabbitmqManagementUrl: 'TEST_RABBITMQ_MANAGEMENT_URL',
  templateDatabase: 'TEST_TEMPLATE_DATABASE',
} as const satisfies Record<keyof TestServers, string>;

/** Hands the servers to the workers, which inherit this process's environment. */
export function publishServers(servers: TestServers): void {
  for (const [field, variable] of Object.entries(variables)) {
    process.env[variable] = servers[field as keyof TestServers];
  }
}

/** One of the servers. Throws when the global setup did not run. */
export function server(field: keyof TestServers): string {
  const value = process.env[variables[field]];
  if (value === undefined) {
    throw new Error(
      `${variables[field]} is not set. Run the tests with "npm test": its global setup starts the servers ` +
        'with "npm run services -- up" and says where they are.',
    );
  }
  return value;
}
