import { gzipSync } from 'node:zlib';
import type { MessageProperties } from 'amqplib';
import { consumeMessage } from '../../../test/support/consume-message.js';
import { randomJson } from '../../../test/support/random-json.js';
import { seeded } from '../../../test/support/random.js';
import { UnprocessableMessageError, type UnprocessableReason } from '../errors.js';
import { parseMessage } from './incoming-message.js';

const STRUCTURED = 'application/cloudevents+json';
const BATCH = 'application/cloudevents-batch+json';
const event = (more: object) => ({
  specversion: '1.0',
  type: 'shop.sale',
  id: 'e-1',
  source: '/shop',
  ...more,
});
const attributes = { 'ce-specversion': '1.0', 'ce-type': 'shop.sale' };
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const dataOf = (body: unknown, properties?: Partial<MessageProperties>): unknown =>
  parseMessage(consumeMessage(body, properties)).data;

function expectRefused(
  reason: UnprocessableReason,
  body: unknown,
  properties?: Partial<MessageProperties>,
): void {
  const parse = (): unknown => dataOf(body, properties);
  expect(parse).toThrow(UnprocessableMessageError);
  expect(parse).toThrow(expect.objectContaining({ reason }));
}

describe('a CloudEvent in structured mode', () => {
  it.each([
    undefined,
    'application/json',
    STRUCTURED,
    'Application/CloudEvents+JSON; charset=UTF-8',
  ])(
    'is routed by its routing key, its type property, its type; the content type is %p',
    (contentType) => {
      const message = consumeMessage(event({ data: { a: 1 } }), { contentType, type: 'Sale' });
      expect(parseMessage(message)).toEqual({
        patterns: ['sale.completed', 'Sale', 'shop.sale'],
        data: { a: 1 },
        requestId: undefined,
      });
    },
  );

  it.each<[string, object, unknown]>([
    ['no data', {}, undefined],
    ['no data, of a type that is not read', { datacontenttype: 'text/xml' }, undefined],
    ['null as data', { data: null }, null],
    ['a text as data', { data: '{"a":1}' }, '{"a":1}'],
    ['another kind of JSON', { data: [1], datacontenttype: 'application/vnd.shop+json' }, [1]],
    ['JSON in capitals', { data: [1], datacontenttype: 'TEXT/JSON;charset=utf-8' }, [1]],
    ['null as the type of its data', { data: [1], datacontenttype: null }, [1]],
    ['data in Base64', { data_base64: base64('{"a":"é"}') }, { a: 'é' }],
    ['data in Base64 beside none', { data: null, data_base64: base64('7') }, 7],
    ['null as data in Base64', { data: [1], data_base64: null }, [1]],
    ['Base64 of nothing', { data_base64: '' }, undefined],
  ])('can have %s', (_, more, data) => {
    expect(dataOf(event(more))).toEqual(data);
  });

  it.each<[string, UnprocessableReason, object]>([
    ['XML', 'unsupported-content-type', { data: '<a/>', datacontenttype: 'text/xml' }],
    [
      'XML in Base64',
      'unsupported-content-type',
      { data_base64: 'PGEvPg==', datacontenttype: 'a/xml' },
    ],
    ['data twice', 'invalid-cloud-event', { data: 1, data_base64: base64('1') }],
    ['data in what is not Base64', 'not-decodable', { data_base64: 'e30=!' }],
    ['data in Base64 for URLs', 'not-decodable', { data_base64: 'Pz8_' }],
    ['a number for Base64', 'not-decodable', { data_base64: 30 }],
    ['Base64 of no JSON', 'not-json', { data_base64: base64('{"a"') }],
    ['Base64 of no UTF-8', 'not-json', { data_base64: 'IsMi' }],
    ['Base64 of 101 levels', 'too-deep', { data_base64: base64('['.repeat(101)) }],
    ['Base64 of __proto__', 'unsafe-properties', { data_base64: base64('{"__proto__":{}}') }],
  ])('is refused when it has %s, as %s', (_, reason, more) => {
    expectRefused(reason, event(more));
    expectRefused(reason, event(more), { contentType: STRUCTURED });
  });

  it('is refused when only its content type says that it is one', () => {
    const contentType = STRUCTURED;
    expectRefused('invalid-cloud-event', { data: { a: 1 } }, { contentType });
    expectRefused('invalid-cloud-event', [event({})], { contentType });
    expectRefused('invalid-cloud-event', { pattern: 'x', data: 1 }, { contentType });
  });

  it('is read as such also when its attributes are headers too', () => {
    const properties = { contentType: STRUCTURED, headers: attributes };
    expect(dataOf(event({ data: { a: 1 } }), properties)).toEqual({ a: 1 });
  });

  it('does not tell much of a content type that is long', () => {
    const datacontenttype = `text/${'x'.repeat(10_000)}`;
    expect(() => dataOf(event({ data: 1, datacontenttype }))).toThrow(/^.{1,200}$/);
  });
});

describe('a CloudEvent in binary mode', () => {
  it.each(['cloudEvents:', 'cloudEvents_', 'ce-', 'ce_'])(
    'has its attributes in headers that begin with %s, and its data as the body',
    (prefix) => {
      const headers = { [`${prefix}specversion`]: '1.0', [`${prefix}type`]: 'shop.sale' };
      expect(parseMessage(consumeMessage({ a: 1 }, { headers, type: 'Sale' }))).toEqual({
        patterns: ['sale.completed', 'Sale', 'shop.sale'],
        data: { a: 1 },
        requestId: undefined,
      });
    },
  );

  it.each<[string, object]>([
    ['an envelope', { pattern: 'x', data: 1 }],
    ['an event', event({ data: 1 })],
  ])('has the whole body as its data, also when that looks like %s', (_, body) => {
    expect(dataOf(body, { headers: attributes })).toEqual(body);
  });

  it('has no data when the body is empty', () => {
    const contentType = 'text/xml';
    expect(dataOf(Buffer.alloc(0), { headers: attributes })).toBeUndefined();
    expect(dataOf(Buffer.alloc(0), { headers: attributes, contentType })).toBeUndefined();
  });

  it('can be compressed', () => {
    const properties = { headers: attributes, contentEncoding: 'gzip' };
    expect(dataOf(gzipSync('{"a":1}'), properties)).toEqual({ a: 1 });
  });

  it.each<[string, Record<string, unknown>]>([
    ['no type', { 'ce-specversion': '1.0' }],
    ['no specversion', { 'ce-type': 'shop.sale' }],
    ['a specversion that is no text', { 'ce-specversion': 1, 'ce-type': 'shop.sale' }],
    ['attributes of two prefixes', { 'ce-specversion': '1.0', ce_type: 'shop.sale' }],
  ])('is not seen in headers with %s', (_, headers) => {
    const message = consumeMessage({ pattern: 'x', data: 1 }, { headers, contentType: 'text/xml' });
    expect(parseMessage(message)).toMatchObject({ patterns: ['x'], data: 1 });
  });

  it.each<[UnprocessableReason, string | undefined, object, string]>([
    ['unsupported-content-type', 'text/xml', {}, '<a/>'],
    ['unsupported-content-type', 'application/octet-stream', {}, '{}'],
    ['unsupported-content-type', undefined, { 'ce-datacontenttype': 'text/xml' }, '<a/>'],
    ['not-json', undefined, {}, '<a/>'],
    ['not-json', 'application/json', { 'ce-datacontenttype': 'text/xml' }, '<a/>'],
  ])('is refused as %s: %s, %j', (reason, contentType, more, body) => {
    const headers = { ...attributes, ...more };
    expectRefused(reason, Buffer.from(body), { headers, contentType });
  });
});

it.each([BATCH, `${BATCH}; charset=UTF-8`, 'application/cloudevents-batch+avro'])(
  'refuses a batch of CloudEvents, and says why: %s',
  (contentType) => {
    const batch = [event({ data: 1 })];
    expectRefused('unsupported-content-type', batch, { contentType });
    expect(() => dataOf(batch, { contentType, headers: attributes })).toThrow(/one business key/);
  },
);

it('refuses a CloudEvent in a format that it cannot read', () => {
  const contentType = 'application/cloudevents+avro';
  expectRefused('unsupported-content-type', Buffer.from([1]), { contentType });
  expectRefused('unsupported-content-type', {}, { contentType, headers: attributes });
});

it('gives the same data whichever way an event brings it', () => {
  const random = seeded(31);
  for (let run = 0; run < 500; run++) {
    const data = randomJson(random);
    const json = JSON.stringify(data);
    expect(dataOf(event({ data }))).toEqual(data);
    expect(dataOf(event({ data_base64: base64(json) }))).toEqual(data);
    expect(dataOf(Buffer.from(json), { headers: attributes })).toEqual(data);
  }
});
