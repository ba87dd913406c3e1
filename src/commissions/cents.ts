import type { ValueTransformer } from 'typeorm';

/** PostgreSQL's bigint reaches JavaScript as text; money is counted in whole cents, exactly. */
export const cents: ValueTransformer = {
  from: (value: string | null) => (value === null ? null : BigInt(value)),
  to: (value: bigint | null | undefined) => value?.toString(),
};
