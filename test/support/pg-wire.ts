/** One message of PostgreSQL's protocol; the type is '' for those that open a connection. */
export interface PgMessage {
  type: string;
  body: Buffer;
}

/** Cuts a byte stream into messages, wherever its chunks begin and end. */
export class PgMessages {
  private rest: Buffer = Buffer.alloc(0);

  /** The messages that this chunk completes. */
  push(chunk: Buffer): PgMessage[] {
    this.rest = Buffer.concat([this.rest, chunk]);
    const messages: PgMessage[] = [];
    for (let message = this.take(); message !== undefined; message = this.take())
      messages.push(message);
    return messages;
  }

  private take(): PgMessage | undefined {
    // A type is a letter. Without one the length comes first, whose high byte is 0.
    const typeLength = this.rest[0] === 0 ? 0 : 1;
    if (this.rest.length < typeLength + 4) return undefined;
    const end = typeLength + this.rest.readInt32BE(typeLength);
    if (this.rest.length < end) return undefined;
    const type = this.rest.toString('latin1', 0, typeLength);
    const body = this.rest.subarray(typeLength + 4, end);
    this.rest = this.rest.subarray(end);
    return { type, body };
  }
}

/** What one client runs: simple queries, and those of the extended protocol when they are executed. */
export class ExecutedStatements {
  private readonly messages = new PgMessages();
  private readonly prepared = new Map<string, string>();
  private readonly portals = new Map<string, string>();

  /** The SQL that begins to run with this chunk from the client. */
  push(chunk: Buffer): string[] {
    return this.messages.push(chunk).flatMap((message) => this.executed(message) ?? []);
  }

  private executed({ type, body }: PgMessage): string | undefined {
    const [first = '', second = ''] = body.toString('utf8').split('\0', 2);
    switch (type) {
      case 'Q':
        return first;
      case 'P':
        this.prepared.set(first, second);
        return undefined;
      case 'B':
        // Prepared before anybody watched: the template names statements after how they begin.
        this.portals.set(first, this.prepared.get(second) ?? second);
        return undefined;
      case 'E':
        return this.portals.get(first);
      default:
        return undefined;
    }
  }
}

/** What a server answers: the tags of completed statements, and ERROR for those that failed. */
export class StatementOutcomes {
  private readonly messages = new PgMessages();

  push(chunk: Buffer): string[] {
    return this.messages.push(chunk).flatMap(({ type, body }) => {
      if (type === 'C') return body.toString('latin1', 0, body.length - 1);
      return type === 'E' ? 'ERROR' : [];
    });
  }
}
