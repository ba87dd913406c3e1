import { topicsOverlap } from '../dispatch/routes.js';
import type { PlannedHandler, QueuePlan } from './queue-plan.js';

/** How long one message can go on being delivered, while everything is up. */
export interface Redelivery {
  /** In delay queues, in milliseconds. */
  waitsMs: number;
  /** Times it is run, when each attempt also ends with the process as often as it may. */
  runs: number;
  /** Of the handlers that may run for it, one after another: one entry for each, its own included. */
  patterns: string[];
}

/**
 * The longest redelivery of the messages of a pattern. An upper bound: each wait is taken for the longest
 * that the queue has, because a handler can ask for it, and a message with several handlers comes back as
 * long as one of them has attempts left.
 *
 * @param crashLimit deliveries of an attempt that may end with the process; there are none beyond it
 */
export function longestRedelivery(
  pattern: string,
  queues: readonly QueuePlan[],
  crashLimit: number,
): Redelivery {
  const all = queues
    .filter(({ handlers }) => handlers.some((handler) => handler.pattern === pattern))
    .map((queue) => ({
      longestDelayMs: queue.delays.delaysMs.at(-1)!,
      together: queue.handlers.filter((handler) => topicsOverlap(handler.pattern, pattern)),
    }))
    .map(({ longestDelayMs, together }) => {
      const attempts = mostAttempts(together);
      return {
        waitsMs: (attempts - 1) * longestDelayMs,
        runs: attempts * crashLimit,
        patterns: together.map((handler) => handler.pattern),
      };
    });
  // Two handlers of a pattern can be on two queues; one that is on none has no messages.
  return {
    waitsMs: Math.max(0, ...all.map(({ waitsMs }) => waitsMs)),
    runs: Math.max(0, ...all.map(({ runs }) => runs)),
    patterns: all.flatMap(({ patterns }) => patterns),
  };
}

function mostAttempts(handlers: readonly PlannedHandler[]): number {
  return Math.max(...handlers.map(({ schedule }) => schedule.attempts));
}
