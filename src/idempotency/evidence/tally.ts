/** What happened to the messages of one consumer. */
export interface Counts {
  processed: number;
  duplicates: number;
  keyReuses: number;
  deadLetters: number;
  /** The greatest age that a key had when its message came again, in seconds; undefined without any. */
  oldestDuplicateSeconds: number | undefined;
}

export type Counted = Exclude<keyof Counts, 'oldestDuplicateSeconds'>;

/** Counts by consumer, kept in memory until they are written down. As many entries as there are consumers. */
export class Tally {
  private byConsumer = new Map<string, Counts>();

  count(consumer: string, what: Counted): void {
    this.of(consumer)[what]++;
  }

  duplicate(consumer: string, ageSeconds: number): void {
    const counts = this.of(consumer);
    counts.duplicates++;
    counts.oldestDuplicateSeconds = Math.max(counts.oldestDuplicateSeconds ?? 0, ageSeconds);
  }

  /** All that was counted, which begins anew. */
  take(): Map<string, Counts> {
    const taken = this.byConsumer;
    this.byConsumer = new Map();
    return taken;
  }

  /** Adds what was taken and could not be written down. */
  putBack(taken: ReadonlyMap<string, Counts>): void {
    for (const [consumer, counts] of taken) {
      const mine = this.of(consumer);
      mine.processed += counts.processed;
      mine.duplicates += counts.duplicates;
      mine.keyReuses += counts.keyReuses;
      mine.deadLetters += counts.deadLetters;
      const ages = [mine.oldestDuplicateSeconds, counts.oldestDuplicateSeconds];
      const known = ages.filter((age) => age !== undefined);
      mine.oldestDuplicateSeconds = known.length === 0 ? undefined : Math.max(...known);
    }
  }

  private of(consumer: string): Counts {
    const known = this.byConsumer.get(consumer) ?? {
      processed: 0,
      duplicates: 0,
      keyReuses: 0,
      deadLetters: 0,
      oldestDuplicateSeconds: undefined,
    };
    this.byConsumer.set(consumer, known);
    return known;
  }
}
