export interface ServiceUrls {
  databaseUrl: string;
  rabbitmqUrl: string;
  rabbitmqManagementUrl: string;
}

/** What one server contributes to the whole. */
export type Urls = Partial<ServiceUrls>;

export type Log = (line: string) => void;

/** Where a server that we started listens, and as whom it lets us in. */
export interface Access {
  ports: Readonly<Record<string, number>>;
  user: string;
  password: string;
}

/** One private server of this checkout, made from the system's packages. */
export interface Instance extends Access {
  /**
   * Everything it keeps, readable by its owner only; what must survive is in `data`. Its processes live in here: that
   * is how they are recognised.
   */
  folder: string;
  /** Where the installed programs are. */
  programs: string;
  /** Set when root starts it for a system user. */
  owner?: Owner;
}

export interface Owner {
  uid: number;
  gid: number;
}

/** How a server is made from Debian's packages. */
export interface DebianPackage {
  name: string;
  /** Oldest version that the project supports, as in `10` or `3.10`. */
  minimum: string;
  /** Runs the server when we are root. */
  systemUser: string;
  /** The name of its main process. */
  main: string;
  /** All that can be running of it by name, in the order in which they are stopped. */
  processes: readonly string[];
  stopSignal: NodeJS.Signals;
  /** The folder with the newest installed programs that are new enough. */
  programs(): Promise<string | undefined>;
  /** Fills an empty folder. */
  initialise(instance: Instance): Promise<void>;
  /** Starts the processes and returns at once. */
  launch(instance: Instance): Promise<Launched>;
}

export interface Launched {
  logFile: string;
  /** Set as soon as the main process has ended, which is why waiting for it is pointless. */
  ended: () => boolean;
}

/** A server that the project needs. To add one: a file like postgres.ts, and its entry in servers.ts. */
export interface Server {
  /** Its name in docker-compose.yml, in the state file, and of its folder. */
  name: string;
  title: string;
  /** The variable that names a server that is already there. */
  variable: string;
  /** Names of the ports it needs. */
  ports: readonly string[];
  /** Those that docker-compose.yml publishes, with the variable that moves them. */
  composePorts: Readonly<Record<string, string>>;
  /** The URLs from the environment, or nothing when its variable is not set. */
  fromEnvironment(env: NodeJS.ProcessEnv): Urls | undefined;
  urls(access: Access): Urls;
  /** Logs in for real. Throws a ServicesError, which names the URL without its password, when it cannot. */
  check(urls: Urls): Promise<void>;
  debian: DebianPackage;
}
