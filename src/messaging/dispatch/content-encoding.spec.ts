import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { randomJson } from '../../../test/support/random-json.js';
import { integer, listOf, oneOf, seeded, type Random } from '../../../test/support/random.js';
import { decode } from './content-encoding.js';
import { UnprocessableMessageError, type UnprocessableReason } from '../errors.js';

const LIMIT = 64 * 1024;
const BODY = Buffer.from('{"saleId":"S-1"}');
const ENCODERS: [string, (body: Buffer) => Buffer][] = [
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
];
const zeros = (length: number): Buffer => Buffer.alloc(length);

describe('decode', () => {
  it.each<[string, Buffer]>([
    ['gzip', gzipSync(BODY)],
    ['GZip', gzipSync(BODY)],
    [' gzip ', gzipSync(BODY)],
    ['gzip, utf-8', gzipSync(BODY)],
    ['gzip:UTF-8', gzipSync(BODY)],
    ['identity, gzip', gzipSync(BODY)],
    ['deflate', deflateSync(BODY)],
    ['deflate', deflateSync(BODY, { level: 0 })],
    ['DEFLATE', deflateRawSync(BODY)],
    ['deflate', deflateRawSync(BODY, { level: 0 })],
  ])('decodes %s', (encoding, content) => {
    expect(decode(content, encoding, LIMIT)).toEqual(BODY);
  });

  it('decodes gzip in several members, as appending to a file gives', () => {
    const members = [BODY.subarray(0, 5), BODY.subarray(5)].map((part) => gzipSync(part));
    expect(decode(Buffer.concat(members), 'gzip', LIMIT)).toEqual(BODY);
  });

  it.each(['', ' ', 'identity', 'Identity', 'utf-8', 'UTF-8', 'utf8', 'utf-8, identity'])(
    'takes a body as it is when the encoding is "%s"',
    (encoding) => {
      expect(decode(BODY, encoding, LIMIT)).toBe(BODY);
    },
  );

  it.each<[UnprocessableReason, string, Buffer]>([
    ['unsupported-encoding', 'gzip, deflate', deflateSync(gzipSync(BODY))],
    ['unsupported-encoding', 'gzip,gzip', gzipSync(gzipSync(BODY))],
    ['unsupported-encoding', 'br', BODY],
    ['unsupported-encoding', 'zstd', BODY],
    ['unsupported-encoding', 'x-lz4', BODY],
    ['unsupported-encoding', 'base64', BODY],
    ['unsupported-encoding', '__proto__', BODY],
    ['not-decodable', 'gzip', BODY],
    ['not-decodable', 'gzip', zeros(0)],
    ['not-decodable', 'gzip', gzipSync(BODY).subarray(0, -1)],
    ['not-decodable', 'gzip', Buffer.concat([gzipSync(BODY), BODY])],
    ['not-decodable', 'gzip', deflateSync(BODY)],
    ['not-decodable', 'deflate', BODY],
    ['not-decodable', 'deflate', zeros(0)],
    ['not-decodable', 'deflate', gzipSync(BODY)],
    ['not-decodable', 'deflate', deflateSync(BODY).subarray(0, -1)],
    ['not-decodable', 'deflate', deflateRawSync(BODY).subarray(0, -1)],
    ['not-decodable', 'deflate', Buffer.concat([deflateSync(BODY), BODY])],
    ['not-decodable', 'deflate', Buffer.concat([deflateRawSync(BODY), BODY])],
    ['not-decodable', 'deflate', deflateSync(BODY, { dictionary: BODY })],
    ['too-large', 'gzip', gzipSync(zeros(LIMIT + 1))],
    ['too-large', 'deflate', deflateSync(zeros(LIMIT + 1))],
    ['too-large', 'deflate', deflateRawSync(zeros(LIMIT + 1))],
  ])('refuses as %s: %s of %j', (reason, encoding, content) => {
    const decoding = (): Buffer => decode(content, encoding, LIMIT);
    expect(decoding).toThrow(UnprocessableMessageError);
    expect(decoding).toThrow(expect.objectContaining({ reason }));
  });

  it.each(ENCODERS)('decodes %s to as many bytes as the limit allows', (encoding, encode) => {
    expect(decode(encode(zeros(LIMIT)), encoding, LIMIT)).toHaveLength(LIMIT);
  });

  it('leaves an error that is not the body’s fault as it is, so that the message is tried again', () => {
    // A limit that zlib does not take stands for all that can go wrong in here.
    const decoding = (): Buffer => decode(gzipSync(BODY), 'gzip', -1);
    expect(decoding).toThrow(expect.objectContaining({ code: 'ERR_OUT_OF_RANGE' }));
  });

  it('gives back what was encoded, whatever it is', () => {
    const random = seeded(7);
    for (let run = 0; run < 500; run++) {
      const body = Buffer.from(JSON.stringify(randomJson(random)));
      for (const [encoding, encode] of ENCODERS) {
        expect(decode(encode(body), encoding, LIMIT)).toEqual(body);
      }
    }
  });

  it('refuses what is not decodable with one kind of error, whatever it is', () => {
    const random = seeded(8);
    const seen = { decoded: 0, refused: 0 };
    for (let run = 0; run < 3_000; run++) {
      const [encoding, encode] = oneOf(random, ENCODERS);
      const content = run % 2 === 0 ? bytes(random) : damaged(random, encode(BODY));
      try {
        decode(content, encoding, LIMIT);
        seen.decoded++;
      } catch (error) {
        expect(error).toBeInstanceOf(UnprocessableMessageError);
        seen.refused++;
      }
    }
    expect(seen.decoded).toBeGreaterThan(0);
    expect(seen.refused).toBeGreaterThan(2_000);
  });
});

function bytes(random: Random): Buffer {
  return Buffer.from(listOf(random, 100, () => integer(random, 0, 255)));
}

/** Some of it changed, or its end missing. */
function damaged(random: Random, content: Buffer): Buffer {
  const copy = Buffer.from(content);
  copy[integer(random, 0, copy.length - 1)] = integer(random, 0, 255);
  return random() < 0.5 ? copy : copy.subarray(0, integer(random, 0, copy.length));
}
