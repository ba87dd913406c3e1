import type { Log, Server } from './server.js';
import type { ServerState, State } from './state.js';

/** One way to start servers that nobody gave us. */
export interface Way {
  name: ServerState['way'];
  title: string;
  /** Why it cannot be used here, with what would help; nothing when it can. */
  obstacle(wanted: readonly Server[]): Promise<string | undefined>;
  /** Starts them, notes in the state what it needs to find them again, and returns when they answer. */
  start(wanted: readonly Server[], state: State, log: Log): Promise<void>;
  /** Stops all that it has started; `data` deletes their data. The notes in the state are the caller's to change. */
  stop(options: { state: State; data: boolean; log: Log }): Promise<void>;
}
