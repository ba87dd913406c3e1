import { z } from 'zod';
import { milliseconds, type Duration } from '../duration/index.js';

const DAY_MS = 86_400_000;
/** A retry that waits longer is a job for a scheduler. */
const MAX_DELAY_MS = DAY_MS;

const url = (protocols: string[], example: string) =>
  z.string().refine((value) => protocols.includes(protocolOf(value)), {
    // The value itself is never part of the message: it holds a password.
    error: `must be a URL like ${example}`,
  });

const integer = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/, `must be a whole number from ${min} to ${max}`)
    .transform(Number)
    .refine((value) => value >= min && value <= max, {
      error: `must be a whole number from ${min} to ${max}`,
    });

const name = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'must be 1 to 100 letters, digits, dots, - or _');

/** A schedule in seconds: `1,5,30`, and `0.25` for a quarter of one. */
const delays = z
  .string()
  .regex(/^\d+(\.\d{1,3})?(,\d+(\.\d{1,3})?)*$/, 'must be seconds like 1,5,30')
  .transform((value) => value.split(',').map((delay) => Math.round(Number(delay) * 1000)))
  .refine((all) => all.every((delay) => delay > 0 && delay <= MAX_DELAY_MS), {
    error: 'must be delays of more than 0 and at most 86400 seconds',
  });

const fraction = (max: number) =>
  z
    .string()
    .regex(/^\d(\.\d+)?$/, `must be a number from 0 to ${max}`)
    .transform(Number)
    .refine((value) => value <= max, { error: `must be a number from 0 to ${max}` });

const seconds = (max: number) => integer(1, max).transform((value) => value * 1000);

/** A number with its unit, in milliseconds: `30s`, `7d`. */
const duration = z.string().transform((value, context) => {
  try {
    return milliseconds(value as Duration);
  } catch {
    // The parser's own words hold the value.
    context.addIssue({
      code: 'custom',
      message: 'must be a duration like 30s, 12h or 7d, up to 36500d',
    });
    return z.NEVER;
  }
});

export const databaseSchema = z.object({
  DATABASE_URL: url(['postgres:', 'postgresql:'], 'postgres://user:password@host:5432/database'),
});

/**
 * Every environment variable that the service reads, with its check and its default.
 * `.env.example` lists the same names; `schema.spec.ts` holds the two against each other.
 */
export const appSchema = databaseSchema.extend({
  RABBITMQ_URL: url(['amqp:', 'amqps:'], 'amqp://user:password@host:5672/vhost'),
  SERVICE_NAME: name.default('commissions'),
  EVENTS_EXCHANGE: name.default('events'),
  PORT: integer(0, 65_535).default(3000),
  CONSUMER_CONCURRENCY: integer(1, 1000).default(16),
  DATABASE_POOL_SIZE: integer(1, 2000).optional(),
  DATABASE_PREPARED_STATEMENTS: z.enum(['on', 'off'], { error: 'must be on or off' }).default('on'),
  RETRY_DELAYS: delays.default([1_000, 5_000, 30_000, 120_000, 600_000]),
  RETRY_JITTER: fraction(0.5).default(0.2),
  CRASH_LIMIT: integer(3, 20).default(5),
  CONSUMER_DELAY: duration.default(7 * DAY_MS),
  REPROCESSING_HORIZON: duration.default(60 * DAY_MS),
  PURGE_INTERVAL: duration
    .refine((value) => value >= 1_000 && value <= DAY_MS, { error: 'must be from 1s to 1d' })
    .default(300_000),
  SHUTDOWN_GRACE_SECONDS: seconds(3600).default(25_000),
  LOG_FORMAT: z.enum(['json', 'text'], { error: 'must be json or text' }).optional(),
  LOG_LEVEL: z
    .enum(['error', 'warn', 'log', 'debug', 'verbose'], {
      error: 'must be error, warn, log, debug or verbose',
    })
    .default('log'),
});

/** Empty for what has no `//`: `amqp:user:password@host` parses too, as a path without a host. */
function protocolOf(value: string): string {
  return /^[a-z]+:\/\//i.test(value) && URL.canParse(value) ? new URL(value).protocol : '';
}
