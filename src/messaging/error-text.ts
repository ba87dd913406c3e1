import { redactUrls } from '../observability/index.js';

const MAX_NAME = 200;
const MAX_MESSAGE = 1_000;

/**
 * What may leave the process about an error: bounded, and without passwords. None of these throws,
 * whatever was thrown: a message whose error has no text must be settled too.
 */
export function nameOf(error: unknown): string {
  return (error instanceof Error ? textOf(error.name) : typeof error).slice(0, MAX_NAME);
}

export function messageOf(error: unknown): string {
  const message = error instanceof Error ? error.message : error;
  return redactUrls(textOf(message)).slice(0, MAX_MESSAGE);
}

export function stackOf(error: unknown): string | undefined {
  return error instanceof Error && typeof error.stack === 'string'
    ? redactUrls(error.stack)
    : undefined;
}

function textOf(value: unknown): string {
  if (typeof value === 'string') {
    return value;
  }
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    // Circular, or a bigint.
    return Object.prototype.toString.call(value);
  }
}
