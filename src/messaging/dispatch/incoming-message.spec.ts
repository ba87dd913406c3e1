import { gzipSync } from 'node:zlib';
import type { ConsumeMessage } from 'amqplib';
import { consumeMessage } from '../../../test/support/consume-message.js';
import { randomJson } from '../../../test/support/random-json.js';
import { integer, listOf, oneOf, seeded } from '../../../test/support/random.js';
import { parseMessage } from './incoming-message.js';

describe('parseMessage', () => {
  it('reads a bare body, routed by its routing key, then by its type', () => {
    const body = { saleId: 'S', data: 1 };
    expect(parseMessage(consumeMessage(body, { type: 'Sale' }))).toEqual({
      patterns: ['sale.completed', 'Sale'],
      data: body,
      requestId: undefined,
    });
  });

  it('reads an event in the envelope of Nest', () => {
    const message = consumeMessage({ pattern: 'sale.completed', data: { saleId: 'S' } }, {}, 'q');
    expect(parseMessage(message)).toEqual({
      patterns: ['sale.completed'],
      data: { saleId: 'S' },
      requestId: undefined,
    });
  });

  it('reads a request in the envelope of Nest', () => {
    const message = consumeMessage({ pattern: { cmd: 'sum' }, data: [1, 2], id: 'r-1' });
    expect(parseMessage(message)).toEqual({
      patterns: [{ cmd: 'sum' }],
      data: [1, 2],
      requestId: 'r-1',
    });
  });

  it.each<[string, object]>([
    ['has other fields', { pattern: 'x', data: 1, colour: 'red' }],
    ['has a pattern that is none', { pattern: null, data: 1 }],
    ['has a boolean pattern', { pattern: true, data: 1 }],
    ['has an id and data, and no pattern', { id: '1', data: 2 }],
  ])('takes a body that %s for a bare one', (_, body) => {
    expect(parseMessage(consumeMessage(body))).toMatchObject({
      data: body,
      requestId: undefined,
    });
  });

  it('keeps the original routing key of a copy that came through a retry queue', () => {
    const headers = { 'x-original-routing-key': 'sale.completed' };
    const copy = consumeMessage({ a: 1 }, { headers }, 'commissions');
    expect(parseMessage(copy).patterns[0]).toBe('sale.completed');
  });

  it('reads a message without headers', () => {
    expect(parseMessage(consumeMessage([], { headers: undefined })).data).toEqual([]);
  });

  it('gives the same for a body and for its gzip, whatever it says', () => {
    const random = seeded(21);
    for (let run = 0; run < 500; run++) {
      const body = { pattern: randomJson(random), data: randomJson(random) };
      const json = Buffer.from(JSON.stringify(run % 2 === 0 ? body : body.data));
      const gzipped = consumeMessage(gzipSync(json), { contentEncoding: 'gzip' });
      expect(parseMessage(gzipped)).toEqual(parseMessage(consumeMessage(json)));
    }
  });

  it('throws nothing but that a message is unprocessable, whatever bytes it has', () => {
    const random = seeded(22);
    const encodings = [undefined, 'gzip', 'deflate', 'br', 'utf-8'];
    const contentTypes = [
      undefined,
      'application/json',
      'application/cloudevents+json',
      'text/xml',
    ];
    const headers = [undefined, {}, { 'ce-specversion': '1.0', 'ce-type': 't' }];
    const outcomes = new Set<string>();
    for (let run = 0; run < 2_000; run++) {
      const bytes = Buffer.from(listOf(random, 60, () => integer(random, 0, 255)));
      const content = run % 2 === 0 ? bytes : gzipSync(bytes);
      const properties = {
        contentEncoding: oneOf(random, encodings),
        contentType: oneOf(random, contentTypes),
        headers: oneOf(random, headers),
      };
      outcomes.add(outcomeOf(consumeMessage(content, properties)));
    }
    expect([...outcomes].toSorted()).toEqual(['UnprocessableMessageError', 'read']);
  });
});

function outcomeOf(message: ConsumeMessage): string {
  try {
    parseMessage(message);
    return 'read';
  } catch (error) {
    return (error as Error).name;
  }
}
