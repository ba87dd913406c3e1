import type { Log, Server } from './server.js';
import type { ServerState, State } from './state.js';

/** One way to start servers that nobody gave us. */
export interface Way {
  name: ServerState['way'];
  title: string;
  /** Why it cannot be used here, with what would help; nothing when it can. */
  obstacle(servers: readonly Server[]): Promise<string | undefined>;
  /** Starts them, notes in the state what it needs to find them again, and returns when they answer. */
  start(servers: readonly Server[], state: State, log: Log): Promise<void>;
  /** Stops them. The notes in the state are the caller's to change. */
  stop(
    servers: readonly Server[],
    options: { state: State; data: boolean; log: Log },
  ): Promise<void>;
}
