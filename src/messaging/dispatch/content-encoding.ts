import { gunzipSync, inflateRawSync, inflateSync } from 'node:zlib';
import { UnprocessableMessageError } from '../errors.js';

/** What says nothing about compression: some clients put the text's character set here. */
const NO_ENCODING = new Set(['', 'identity', 'utf-8', 'utf8']);
const DECODERS = new Map([
  ['gzip', gunzip],
  ['deflate', inflate],
]);

/** What zlib says when the bytes are at fault. Anything else, such as no memory, can pass. */
const BROKEN = new Set(['Z_DATA_ERROR', 'Z_BUF_ERROR', 'Z_NEED_DICT']);
const PAST_THE_LIMIT = 'ERR_BUFFER_TOO_LARGE';

/**
 * Undoes the one encoding that the `content-encoding` property names. "gzip, utf-8" is one too: some
 * clients add their compression to the character set.
 *
 * Not asynchronous, because that is slower: to hand the work to zlib's threads costs 0.1 ms a message,
 * where 2 kB take 0.01 ms to decode, and a whole MiB 1.5 ms, less than its JSON takes to parse. The limits of
 * both sizes bound the worst that a body can do, some 10 ms.
 *
 * @param content its size is the caller's to limit
 * @param maxBytes of the decoded body; decoding stops there
 * @throws UnprocessableMessageError
 */
export function decode(content: Buffer, encoding: string, maxBytes: number): Buffer {
  const names = encoding
    .split(/[,:]/)
    .map((name) => name.trim().toLowerCase())
    .filter((name) => !NO_ENCODING.has(name));
  const [name] = names;
  if (name === undefined) {
    return content;
  }
  const decoder = DECODERS.get(name);
  if (decoder === undefined || names.length > 1) {
    throw new UnprocessableMessageError(
      'unsupported-encoding',
      `the content-encoding is ${JSON.stringify(encoding)}: send gzip, deflate or none`,
    );
  }
  try {
    return decoder(content, maxBytes);
  } catch (error) {
    throw unprocessable(error, name, maxBytes);
  }
}

function gunzip(content: Buffer, maxOutputLength: number): Buffer {
  return gunzipSync(content, { maxOutputLength });
}

/** "deflate" means zlib's format; some producers send the bare stream that is inside of it. */
function inflate(content: Buffer, maxOutputLength: number): Buffer {
  const run = hasZlibHeader(content) ? inflateSync : inflateRawSync;
  // With `info` the result is another than its type says.
  const { buffer, engine } = run(content, { maxOutputLength, info: true }) as unknown as {
    buffer: Buffer;
    engine: { bytesWritten: number };
  };
  // Unlike gunzip, inflate takes the end of the stream for the end of the body, and drops what follows.
  if (engine.bytesWritten !== content.length) {
    throw notDecodable('deflate');
  }
  return buffer;
}

/**
 * The method, 8, and a checksum. A bare stream does not begin like this: its first block would be a stored
 * one, with bits set that are padding.
 */
function hasZlibHeader(content: Buffer): boolean {
  return content.length >= 2 && (content[0]! & 0x0f) === 8 && content.readUInt16BE(0) % 31 === 0;
}

function unprocessable(error: unknown, name: string, maxBytes: number): unknown {
  const { code = '' } = error as NodeJS.ErrnoException;
  if (code === PAST_THE_LIMIT) {
    return new UnprocessableMessageError(
      'too-large',
      `the body decodes from ${name} to more than the ${maxBytes} bytes that are read`,
    );
  }
  return BROKEN.has(code) ? notDecodable(name) : error;
}

function notDecodable(name: string): UnprocessableMessageError {
  return new UnprocessableMessageError('not-decodable', `the body is not ${name}, whole and alone`);
}
