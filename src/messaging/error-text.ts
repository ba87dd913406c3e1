import { redactUrls } from '../observability/index.js';

const MAX_NAME = 200;
const MAX_MESSAGE = 1_000;

/** What may leave the process about an error: bounded, and without passwords. */
export function nameOf(error: unknown): string {
  return (error instanceof Error ? error.name : typeof error).slice(0, MAX_NAME);
}

export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : JSON.stringify(error);
  return redactUrls(message ?? '').slice(0, MAX_MESSAGE);
}

export function stackOf(error: unknown): string | undefined {
  return error instanceof Error && error.stack !== undefined ? redactUrls(error.stack) : undefined;
}
