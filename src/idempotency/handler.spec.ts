import { handlerFrom } from './handler.js';
import type { IdempotentHandlerOptions } from './idempotent-handler.decorator.js';
import type { KeySource } from './key.js';

const from = (
  options: IdempotentHandlerOptions = {},
  keyFrom: KeySource = 'id',
  consumer = 'shop/sale',
) => handlerFrom({ keyFrom, options }, consumer, false, ['sale']);

describe('handlerFrom', () => {
  it('applies the defaults that the decorator documents', () => {
    expect(handlerFrom({ keyFrom: 'id', options: {} }, 'shop/sale', true, ['sale'])).toEqual({
      consumer: 'shop/sale',
      patterns: ['sale'],
      keyFrom: 'id',
      fingerprint: undefined,
      retentionMs: 90 * 86_400_000,
      reprocessingMs: undefined,
      transaction: { isolation: 'READ COMMITTED', timeoutMs: 60_000, lockTimeoutMs: 5_000 },
      storesReply: true,
    });
  });

  it('takes every option', () => {
    const fingerprint = (): string => 'x';
    expect(
      from({
        retention: '1d',
        reprocessing: '12h',
        timeout: '5m',
        isolation: 'SERIALIZABLE',
        fingerprint,
      }),
    ).toMatchObject({
      fingerprint,
      retentionMs: 86_400_000,
      reprocessingMs: 43_200_000,
      transaction: { isolation: 'SERIALIZABLE', timeoutMs: 300_000, lockTimeoutMs: 5_000 },
      storesReply: false,
    });
    expect(from({ fingerprint: false }).fingerprint).toBe(false);
  });

  it.each<[string, () => unknown, string]>([
    ['a retention that is none', () => from({ retention: '0d' }), "'0d' is not a duration"],
    ['a reprocessing that is none', () => from({ reprocessing: '0d' }), "'0d' is not a duration"],
    ['a timeout that is none', () => from({ timeout: '1.5s' }), "'1.5s' is not a duration"],
    ['a timeout that no timer can hold', () => from({ timeout: '25d' }), 'at most 24d'],
    ['no path', () => from({}, []), 'its key needs a path'],
    ['an empty path', () => from({}, ''), 'its key needs a path'],
    ['a path with an empty part', () => from({}, 'a..b'), 'no part of it may be empty'],
    ['an empty path in a list', () => from({}, ['a', '']), 'no part of it may be empty'],
    ['a blank consumer', () => from({}, 'id', ' '), 'its consumer name'],
    ['a consumer with a NUL', () => from({}, 'id', 'a\0'), 'its consumer name'],
    ['a consumer of 201 bytes', () => from({}, 'id', 'ä'.repeat(100) + 'a'), '1 to 200 bytes'],
  ])('refuses %s', (_, make, fault) => {
    expect(make).toThrow(RangeError);
    expect(make).toThrow(fault);
  });

  it('takes the longest timeout and the longest consumer name', () => {
    expect(from({ timeout: '24d' }, 'id', 'ä'.repeat(100))).toMatchObject({
      transaction: { timeoutMs: 24 * 86_400_000 },
    });
  });
});
