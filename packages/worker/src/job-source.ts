import type { Job } from './handler.ts';

/** A job that this worker holds, and how its progress and results are sent. */
export interface TakenJob {
  readonly job: Job;
  /** Sends JSON text as the output so far. */
  progress(value: string): void;
  /**
   * Sends the body of a chunk after the earlier ones. A returned promise is to be awaited before the next
   * chunk. It never rejects. With a chunk id, the server can detect a repeat.
   */
  chunk(body: string, chunkId?: string): Promise<void> | undefined;
  /**
   * Sends the result until it is acknowledged. While a returned promise is pending, the job keeps its slot.
   * It never rejects.
   */
  finish(body: string, streamed: boolean): Promise<void> | undefined;
  /**
   * Returns an unstarted job to the queue, as if it had never been taken. False where the protocol cannot do
   * that.
   */
  returnToQueue?(): boolean;
  /** The job starts after waiting here for this many milliseconds. */
  recordWait?(milliseconds: number): void;
  /** The result is no longer wanted: nothing more is sent, and pending promises resolve. */
  abandon(): void;
}

/** Runs the jobs, in the order in which they arrive. */
export interface JobConsumer {
  /** How many it runs at a time. */
  readonly concurrency: number;
  /** How many more jobs it can take now, including prefetched ones where jobs can be returned. */
  capacity(ahead?: boolean): number;
  /** Where jobs are prefetched, less room than this is not worth a request. */
  minBatch(): number;
  deliver(delivery: TakenJob): void;
  /** Cancels a job. False where it does not hold the job or has cancelled it before. */
  abortJob(jobId: string): boolean;
  /** The jobs that it holds. */
  jobIds(): string[];
}

/** Where jobs come from and results go. */
export interface JobSource {
  /** Starts to take jobs. */
  start(consumer: JobConsumer): void;
  /**
   * The consumer wants fewer jobs than before: those that were asked for and have not come are not wanted any
   * more.
   */
  capacityShrank?(): void;
  /** The consumer has more room than before. */
  capacityGrew(): void;
  /** Jobs whose results are not acknowledged, where their slots are already free. */
  unacknowledgedJobIds?(): string[];
  /** Takes no more jobs. Resolves when no more can arrive, as far as the worker can know. */
  stopTaking(): Promise<void>;
  /**
   * After `leave`, when the consumer holds no jobs: waits for the last acknowledgements and closes
   * everything.
   */
  close(): Promise<void>;
  /** A fitness check failed. Resolves when this is reported or cannot be. */
  reportUnhealthy(check: string, reason: string): Promise<void>;
}
