import { HEADER } from '../settle/headers.js';
import { isRecord } from '../dispatch/message-body.js';

/** One stay among the dead letters that ended in a replay. Times are ISO 8601, in UTC. */
export interface PastFailure {
  reason: string;
  errorName?: string;
  /** The first 200 characters. */
  errorMessage?: string;
  attempts: number;
  consumer?: string;
  firstFailedAt?: string;
  lastFailedAt?: string;
  replayedAt: string;
}

const MOST_ENTRIES = 10;
const MAX_TEXT = 200;
/**
 * Of all headers, as JSON. Less than what a copy may have: the next failure adds its own, and a message
 * whose headers have no room for that could not be tried again.
 */
const MAX_HEADER_BYTES = 16 * 1024;

/** The history in a header, which may as well hold what anybody wrote there. */
export function historyOf(headers: Record<string, unknown>): PastFailure[] {
  const entries = headers[HEADER.history];
  return Array.isArray(entries) ? entries.filter(isPastFailure).map(pastFailureOf) : [];
}

/** The headers with the youngest entries of the history that there is room for. */
export function withHistory(
  headers: Record<string, unknown>,
  history: readonly PastFailure[],
): Record<string, unknown> {
  let entries = history.slice(-MOST_ENTRIES).map(pastFailureOf);
  while (entries.length > 0) {
    const told = { ...headers, [HEADER.history]: entries };
    if (Buffer.byteLength(JSON.stringify(told)) <= MAX_HEADER_BYTES) {
      return told;
    }
    entries = entries.slice(1);
  }
  return headers;
}

function isPastFailure(entry: unknown): entry is PastFailure {
  return (
    isRecord(entry) && typeof entry.reason === 'string' && typeof entry.replayedAt === 'string'
  );
}

function pastFailureOf(entry: PastFailure): PastFailure {
  const texts = [
    'reason',
    'errorName',
    'errorMessage',
    'consumer',
    'firstFailedAt',
    'lastFailedAt',
    'replayedAt',
  ] as const;
  const kept = texts
    .filter((name) => typeof entry[name] === 'string')
    .map((name) => [name, entry[name]?.slice(0, MAX_TEXT)]);
  const attempts = Number.isInteger(entry.attempts) ? entry.attempts : 0;
  return { ...(Object.fromEntries(kept) as Omit<PastFailure, 'attempts'>), attempts };
}
