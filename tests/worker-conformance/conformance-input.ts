/** What a job asks of the handlers of the suite. */
export interface ConformanceInput {
  do?: string;
  value?: unknown;
  /** A file in which every run is noted. */
  runs?: string;
  /** A file that ends the waiting. */
  until?: string;
  megabytes?: number;
  seconds?: number;
  count?: number;
  pauseMs?: number;
  raiseAt?: number;
  errorAt?: number;
  unsendableAt?: number;
  /** What a waiting handler prints when it is called, and a generator after its first chunk. */
  says?: string;
  /** What a generator prints when it is closed. */
  closed?: string;
  /** It yields once more when it is closed. */
  stubborn?: boolean;
}

export interface WorkerSettings {
  /** `cancellable` is plain and can wait for a cancellation; in Python only a coroutine is told. */
  handler: 'plain' | 'cancellable' | 'stream';
  channel: 'fast' | 'public' | 'auto';
  aggregate?: boolean;
}
