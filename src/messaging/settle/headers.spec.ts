import type { MessagePropertyHeaders } from 'amqplib';
import { consumeMessage } from '../../../test/support/consume-message.js';
import { PermanentError } from '../errors.js';
import { attemptOf, copyProperties, deliveriesOf, failureHeaders, textHeader } from './headers.js';

/** What a redelivered message with these headers says. */
function deliveriesIn(headers: MessagePropertyHeaders | undefined): number {
  const { fields, ...message } = consumeMessage({}, { headers });
  return deliveriesOf({ ...message, fields: { ...fields, redelivered: true } });
}

describe.each([
  ['attemptOf', attemptOf, 'x-attempt'],
  ['deliveriesOf', deliveriesIn, 'x-delivery-count'],
])('%s', (_, countOf, header) => {
  it.each<[unknown, number]>([
    [undefined, 0],
    [0, 0],
    [3, 3],
    [-1, 0],
    [1.5, 0],
    [Number.NaN, 0],
    [Number.POSITIVE_INFINITY, 0],
    ['2', 0],
    [null, 0],
    [{}, 0],
  ])('reads %p as %d', (value, count) => {
    expect(countOf({ [header]: value })).toBe(count);
  });

  it('is 0 without headers', () => {
    expect(countOf(undefined)).toBe(0);
  });
});

describe('deliveriesOf', () => {
  it('takes the header of a message that is not redelivered for what a producer wrote', () => {
    const forged = consumeMessage({}, { headers: { 'x-delivery-count': 9 } });
    expect(deliveriesOf(forged)).toBe(0);
  });
});

describe('textHeader', () => {
  it('gives a text, and nothing for what is none', () => {
    expect(textHeader({ a: 'x' }, 'a')).toBe('x');
    expect(textHeader({ a: 1 }, 'a')).toBeUndefined();
    expect(textHeader({}, 'a')).toBeUndefined();
    expect(textHeader(undefined, 'a')).toBeUndefined();
  });
});

describe('copyProperties', () => {
  const copy = (properties: object, added: Record<string, unknown> = {}) =>
    copyProperties(consumeMessage({}, properties).properties, added);

  it('keeps what identifies and describes the message', () => {
    const kept = {
      contentType: 'application/json',
      contentEncoding: 'utf-8',
      priority: 3,
      correlationId: 'c',
      replyTo: 'r',
      messageId: 'm',
      timestamp: 17,
      type: 't',
      appId: 'a',
    };
    expect(copy(kept)).toEqual({ ...kept, persistent: true, headers: {} });
  });

  it('is persistent, and loses what would let it expire', () => {
    const copied = copy({ deliveryMode: 1, expiration: '100' });
    expect(copied.persistent).toBe(true);
    expect(copied).not.toHaveProperty('expiration');
    expect(copied).not.toHaveProperty('deliveryMode');
  });

  it('moves the user id, which the broker would check, to a header', () => {
    const copied = copy({ userId: 'shop' });
    expect(copied).not.toHaveProperty('userId');
    expect(copied.headers).toEqual({ 'x-original-user-id': 'shop' });
  });

  it.each([
    'CC',
    'BCC',
    'x-death',
    'x-delivery-count',
    'x-first-death-exchange',
    'x-first-death-queue',
    'x-first-death-reason',
    'x-last-death-exchange',
    'x-last-death-queue',
    'x-last-death-reason',
    'x-publish-id',
    'x-dead-reason',
  ])('drops the header %s', (header) => {
    expect(copy({ headers: { [header]: ['x'], traceparent: '00-1' } }).headers).toEqual({
      traceparent: '00-1',
    });
  });

  it('lets added headers win over those of the message, which stays as it is', () => {
    const { properties } = consumeMessage({}, { headers: { 'x-attempt': 1, tenant: 'T' } });
    expect(copyProperties(properties, { 'x-attempt': 2 }).headers).toEqual({
      'x-attempt': 2,
      tenant: 'T',
    });
    expect(properties.headers).toEqual({ 'x-attempt': 1, tenant: 'T' });
  });

  it('copies a message without headers', () => {
    expect(copy({ headers: undefined }, { a: 1 }).headers).toEqual({ a: 1 });
  });
});

describe('failureHeaders', () => {
  const where = { queue: 'commissions', consumer: 'commissions/sale.completed' };
  const error = new PermanentError('broker amqp://user:secret@host is odd');

  it('tells of the first failure, and where the message came from', () => {
    const headers = failureHeaders(consumeMessage({}), { attempt: 1, error, ...where });
    expect(headers).toEqual({
      'x-attempt': 1,
      'x-consumer': 'commissions/sale.completed',
      'x-original-queue': 'commissions',
      'x-original-exchange': 'events',
      'x-original-routing-key': 'sale.completed',
      'x-error-name': 'PermanentError',
      'x-error-message': 'broker amqp://***@host is odd',
      'x-first-failed-at': expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      'x-last-failed-at': headers['x-first-failed-at'],
    });
  });

  it('keeps the origin and the first failure of a copy that fails again', () => {
    const origin = {
      'x-original-exchange': 'events',
      'x-original-routing-key': 'sale.completed',
      'x-first-failed-at': '2026-01-01T00:00:00.000Z',
    };
    const copy = consumeMessage({}, { headers: { ...origin, 'x-attempt': 1 } }, 'commissions');
    const headers = failureHeaders(
      { ...copy, fields: { ...copy.fields, exchange: '' } },
      { attempt: 2, error: 'x', reason: 'r', firstFailedAt: '2026-02-02T00:00:00.000Z', ...where },
    );
    expect(headers).toMatchObject({ ...origin, 'x-attempt': 2, 'x-dead-reason': 'r' });
    expect(headers['x-last-failed-at']).not.toBe(origin['x-first-failed-at']);
  });

  it('takes the time of the first failure from elsewhere where no copy could carry it', () => {
    const firstFailedAt = '2026-02-02T00:00:00.000Z';
    const note = { attempt: 2, error, firstFailedAt, ...where };
    expect(failureHeaders(consumeMessage({}), note)).toMatchObject({
      'x-first-failed-at': firstFailedAt,
    });
  });
});
