import type { MessageProperties } from 'amqplib';
import { isCopyable } from './copyable.js';

const properties = (some: object): MessageProperties => some as MessageProperties;

it.each([
  ['none', {}],
  ['usual ones', { messageId: 'm', headers: { text: 'x', list: [1.5, -2, null, { deep: true }] } }],
  ['bytes', { headers: { trace: Buffer.alloc(100) } }],
  ['a large whole number', { headers: { count: 2 ** 60 } }],
])('copies %s', (_, some) => {
  expect(isCopyable(properties(some))).toBe(true);
});

it.each([
  ['headers of over 24 KB', { headers: { text: 'x'.repeat(24 * 1024) } }],
  ['no number', { headers: { nested: [{ rate: NaN }] } }],
  ['an infinite number', { headers: { rate: -Infinity } }],
  ['a header’s name of 256 bytes', { headers: { ['é'.repeat(128)]: 1 } }],
  ['bytes that became a longer text', { correlationId: '\uFFFD'.repeat(86) }],
])('does not copy %s', (_, some) => {
  expect(isCopyable(properties(some))).toBe(false);
});
