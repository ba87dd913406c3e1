import type { Direction } from './proxied-connection.js';

/** Tells how often a chunk completes a moment on its connection. */
export interface Watch {
  sees(chunk: Buffer, direction: Direction): number;
}

/** Makes the watch of each connection. */
export type Moment = () => Watch;
