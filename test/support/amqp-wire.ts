/** The methods of AMQP that tests ask about, by class and method number. */
const methods = {
  '10.50': 'connection.close',
  '20.40': 'channel.close',
  '60.20': 'basic.consume',
  '60.30': 'basic.cancel',
  '60.40': 'basic.publish',
  '60.50': 'basic.return',
  '60.60': 'basic.deliver',
  '60.80': 'basic.ack',
  '60.90': 'basic.reject',
  '60.120': 'basic.nack',
} as const;

export type AmqpMethod = (typeof methods)[keyof typeof methods];

/** One call of a method, complete with its message if it carries one. */
export interface AmqpCall {
  method: AmqpMethod;
  channel: number;
  arguments: Buffer;
}

interface Frame {
  type: number;
  channel: number;
  payload: Buffer;
}

const frameType = { method: 1, header: 2, body: 3 } as const;
const carriesMessage = new Set<AmqpMethod>(['basic.publish', 'basic.return', 'basic.deliver']);

/** Reads one direction of a connection, wherever its chunks begin and end. */
export class AmqpCalls {
  private rest: Buffer = Buffer.alloc(0);
  private readonly awaitingMessage = new Map<number, { call: AmqpCall; missing?: number }>();

  /** The calls that this chunk completes. */
  push(chunk: Buffer): AmqpCall[] {
    this.rest = Buffer.concat([this.rest, chunk]);
    const calls: AmqpCall[] = [];
    for (let frame = this.take(); frame !== undefined; frame = this.take()) {
      const call = this.complete(frame);
      if (call !== undefined) calls.push(call);
    }
    return calls;
  }

  private take(): Frame | undefined {
    // A client greets with eight bytes that are not a frame: "AMQP" and a version.
    if (this.rest[0] === 'A'.charCodeAt(0)) {
      if (this.rest.length < 8) return undefined;
      this.rest = this.rest.subarray(8);
    }
    if (this.rest.length < 7) return undefined;
    const size = this.rest.readUInt32BE(3);
    const end = 7 + size + 1;
    if (this.rest.length < end) return undefined;
    const frame = {
      type: this.rest.readUInt8(0),
      channel: this.rest.readUInt16BE(1),
      payload: this.rest.subarray(7, 7 + size),
    };
    this.rest = this.rest.subarray(end);
    return frame;
  }

  private complete({ type, channel, payload }: Frame): AmqpCall | undefined {
    if (type === frameType.method) return this.begin(channel, payload);
    const waiting = this.awaitingMessage.get(channel);
    if (waiting === undefined) return undefined;
    if (type === frameType.header) waiting.missing = Number(payload.readBigUInt64BE(4));
    else if (type === frameType.body) waiting.missing = (waiting.missing ?? 0) - payload.length;
    if (waiting.missing !== 0) return undefined;
    this.awaitingMessage.delete(channel);
    return waiting.call;
  }

  private begin(channel: number, payload: Buffer): AmqpCall | undefined {
    const id = `${payload.readUInt16BE(0)}.${payload.readUInt16BE(2)}`;
    if (!isWatched(id)) return undefined;
    const method = methods[id];
    const call = { method, channel, arguments: payload.subarray(4) };
    if (!carriesMessage.has(method)) return call;
    this.awaitingMessage.set(channel, { call });
    return undefined;
  }
}

function isWatched(id: string): id is keyof typeof methods {
  return Object.hasOwn(methods, id);
}
