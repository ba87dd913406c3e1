export interface Turns {
  /** How many to let pass first; 0 unless set. */
  skip?: number;
  /** How many to pick then; 1 unless set. */
  times?: number;
}

/** Says at each call whether it is this one's turn. */
export function takeTurns({ skip = 0, times = 1 }: Turns): () => boolean {
  let seen = 0;
  return () => {
    seen += 1;
    return seen > skip && seen <= skip + times;
  };
}
