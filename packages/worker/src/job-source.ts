import type { Job } from './handler.ts';

/** A job in this worker's hands, and the way back for what comes of it. */
export interface TakenJob {
  readonly job: Job;
  /** Shows JSON text as the output so far. */
  progress(value: string): void;
  /** Sends the body of a chunk after those before it. A promise asks to be awaited before the next one. It never rejects. With a mark, the server can tell a repeat. */
  chunk(body: string, mark?: string): Promise<void> | undefined;
  /** Sends the result until it is acknowledged. A promise asks that the job keeps its place until then. It never rejects. */
  finish(body: string, streamed: boolean): Promise<void> | undefined;
  /** The job was not begun and goes back, as if it had never been taken. False where there is no way to say so. */
  returnToQueue?(): boolean;
  /** It begins after so many milliseconds here. */
  recordWait?(milliseconds: number): void;
  /** No result is wanted any more: nothing is sent from now on, and whoever waits here goes on. */
  abandon(): void;
}

/** Who takes the jobs. It begins them in the order in which they come. */
export interface JobConsumer {
  /** How many it runs at a time. */
  readonly concurrency: number;
  /** How many more jobs it can take now; with those that it would take ahead, where they can go back. */
  capacity(ahead?: boolean): number;
  /** Less room than this is not worth asking for, where jobs are taken ahead. */
  minBatch(): number;
  deliver(delivery: TakenJob): void;
  /** Stops a job. False where it has no such job, or has stopped it before. */
  abortJob(jobId: string): boolean;
  /** The jobs that it has in hand. */
  jobIds(): string[];
}

/** Where jobs come from and results go. */
export interface JobSource {
  /** Begins to take jobs. */
  start(consumer: JobConsumer): void;
  /** The consumer wants less than it said: what was asked for and has not come is not wanted any more. */
  capacityShrank?(): void;
  /** The consumer has more room than before. */
  capacityGrew(): void;
  /** The jobs whose results are not acknowledged, where their places are free before that. */
  unacknowledgedJobIds?(): string[];
  /** Takes no more jobs. Resolves when none can come any more, as far as can be known. */
  stopTaking(): Promise<void>;
  /** After `leave`, when the consumer has nothing in hand: waits for the last acknowledgements and lets go of everything. */
  close(): Promise<void>;
  /** A fitness check failed. Resolves when it is told or cannot be. */
  reportUnhealthy(check: string, reason: string): Promise<void>;
}
