import { ServicesError } from './errors.js';

/** The URL without its password, for everything that people read. */
export function redact(url: string): string {
  if (!URL.canParse(url)) return '(not a URL)';
  const parsed = new URL(url);
  if (parsed.password) parsed.password = '***';
  return parsed.href;
}

/** The value of an environment variable as a URL of one of these schemes, or an error that names the variable. */
export function urlFrom(variable: string, value: string, schemes: readonly string[]): URL {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url && schemes.includes(url.protocol.slice(0, -1))) return url;
  throw new ServicesError(
    `${variable} is not a ${schemes.join(' or ')} URL. Correct it, or unset it to have a server started for you.`,
  );
}
