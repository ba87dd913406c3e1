import type { Readable } from 'node:stream';

/** The end of what a process wrote; bounded, so that a chatty process does not fill the test's memory. */
export class OutputTail {
  private readonly chunks: string[] = [];
  private length = 0;

  constructor(private readonly maxLength = 1_000_000) {}

  read(stream: Readable | null): void {
    stream?.setEncoding('utf8').on('data', (text: string) => this.append(text));
  }

  text(): string {
    return this.chunks.join('');
  }

  private append(text: string): void {
    this.chunks.push(text);
    this.length += text.length;
    while (this.length > this.maxLength && this.chunks.length > 1) {
      this.length -= this.chunks.shift()?.length ?? 0;
    }
  }
}
