import { existsSync, readFileSync } from 'node:fs';
import { parseEnv } from 'node:util';
import type { z } from 'zod';
import { ConfigurationError } from './configuration.error.js';

export type Environment = Record<string, string | undefined>;

/** The process's environment, completed from `.env`. The only place that touches `process.env`. */
export function processEnvironment(): Environment {
  return existsSync('.env')
    ? completed(process.env, parseEnv(readFileSync('.env', 'utf8')))
    : process.env;
}

/** What is set already wins over the file, also when the one is `NAME` and the other `NAME_FILE`. */
export function completed(environment: Environment, file: Environment): Environment {
  const result = { ...file, ...environment };
  for (const [name, value] of Object.entries(file)) {
    const twin = name.endsWith('_FILE') ? name.slice(0, -'_FILE'.length) : `${name}_FILE`;
    if (!environment[name]) {
      result[name] = environment[twin] ? undefined : value;
    }
  }
  return result;
}

/**
 * Checks an environment against a schema. `NAME_FILE` gives the value of `NAME` from a file, the way
 * container platforms mount secrets; an empty value counts as not set.
 *
 * @throws ConfigurationError that names every fault at once, never a value.
 */
export function parseEnvironment<S extends z.ZodObject>(
  schema: S,
  environment: Environment,
): z.output<S> {
  const values: Record<string, string> = {};
  const faults: string[] = [];
  for (const variable of Object.keys(schema.shape)) {
    try {
      const value = valueOf(variable, environment);
      if (value !== undefined) {
        values[variable] = value;
      }
    } catch (error) {
      faults.push((error as Error).message);
    }
  }
  const unreadable = faults.map((fault) => fault.slice(0, fault.indexOf('_FILE')));
  const result = schema.safeParse(values);
  for (const issue of result.error?.issues ?? []) {
    const variable = String(issue.path[0]);
    if (!unreadable.includes(variable)) {
      faults.push(`${variable} ${variable in values ? issue.message : 'is not set'}`);
    }
  }
  if (!result.success || faults.length > 0) {
    throw new ConfigurationError(faults);
  }
  return result.data;
}

function valueOf(variable: string, environment: Environment): string | undefined {
  const direct = environment[variable] || undefined;
  const file = environment[`${variable}_FILE`] || undefined;
  if (file === undefined) {
    return direct;
  }
  if (direct !== undefined) {
    throw new Error(`${variable}_FILE and ${variable} are both set: keep one of them`);
  }
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    throw new Error(`${variable}_FILE names a file that cannot be read (${code})`, {
      cause: error,
    });
  }
}
