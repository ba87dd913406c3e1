import { randomUUID } from 'node:crypto';
import { saleAt, type Sale } from './sales.js';

/** One message for the broker. */
export interface Sending {
  sale: Sale;
  messageId: string;
  /** Sent on two connections at the same moment, as a producer does that has lost its confirm. */
  simultaneously: boolean;
}

/** Every third sale is sent again, every tenth simultaneously. */
const RESENT = 3;
const SIMULTANEOUS = 10;
/** So many sales later: a repeat that comes long after the first. */
const RESENT_AFTER = 100;

/** The month, with the repeats that at-least-once delivery brings. */
export function* firstPass(sales: number): Generator<Sending> {
  for (let index = 0; index < sales + RESENT_AFTER; index++) {
    if (index < sales) yield sending(saleAt(index, sales), index % SIMULTANEOUS === 0);
    const earlier = index - RESENT_AFTER;
    if (earlier >= 0 && earlier % RESENT === 0) yield sending(saleAt(earlier, sales));
  }
}

/** The month once more, as reprocessing does: the same sales in new messages. */
export function* reprocessing(sales: number): Generator<Sending> {
  for (let index = 0; index < sales; index++) yield sending(saleAt(index, sales));
}

export const firstPassMessages = (sales: number): number =>
  sales + Math.ceil(sales / RESENT) + Math.ceil(sales / SIMULTANEOUS);

function sending(sale: Sale, simultaneously = false): Sending {
  return { sale, messageId: randomUUID(), simultaneously };
}
