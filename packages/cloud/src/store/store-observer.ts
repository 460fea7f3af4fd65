/** Told of every commit, so it must be cheap. */
export interface StoreObserver {
  /** Operations were committed together. */
  committed(operations: number, milliseconds: number): void;
  /** What was committed before is on the disk. PostgreSQL does that within its commits. */
  synced(milliseconds: number): void;
}

export const NO_OBSERVER: StoreObserver = { committed: () => undefined, synced: () => undefined };
