import { randomBytes } from 'node:crypto';

/**
 * Names of what a test run creates on shared servers. The time in the name is what lets a later run
 * recognise the left-overs of a crashed one; neither PostgreSQL nor RabbitMQ remembers when a database
 * or a vhost was made.
 */
const pattern = /^test_(\d{10})_[0-9a-f]{8}$/;

/** Longer than any run takes, so that a run beside this one never loses what it uses. */
const maxAgeSeconds = 3600;

export function temporaryName(): string {
  return `test_${nowSeconds()}_${randomBytes(4).toString('hex')}`;
}

/** Whether the name is ours and older than any run that is still going on. */
export function isLeftOver(name: string): boolean {
  const createdAt = pattern.exec(name)?.[1];
  return createdAt !== undefined && nowSeconds() - Number(createdAt) > maxAgeSeconds;
}

function nowSeconds(): number {
  return Math.floor(Date.now() / 1000);
}
