import type { Job } from '../handler.ts';
import type { TakenJob } from '../job-source.ts';

export interface NumberedChunk {
  number: number;
  body: string;
}

/** Where a job sends what it has to say. */
export interface ChannelJobOutbox {
  sendProgress(job: ChannelJob, value: string): void;
  /** Resolves when there is room for the next one. */
  sendChunk(job: ChannelJob, chunk: NumberedChunk): Promise<void> | undefined;
  sendResult(job: ChannelJob, body: string, streamed: boolean): Promise<void> | undefined;
  /** Sends an unstarted job back to the queue; false where the server does not take it back. */
  sendReturn(job: ChannelJob): boolean;
  forget(job: ChannelJob): void;
}

/** A job that came over the channel. What it says goes over the channel too, or over HTTP where there is none any more. */
export class ChannelJob implements TakenJob {
  readonly job: Job;
  readonly lease: string;
  /** What names this attempt in every line. */
  readonly leaseName: string;
  readonly #outbox: ChannelJobOutbox;
  #httpJob: TakenJob | undefined;
  /** Whole milliseconds between its arrival and its begin. */
  waitedMs = 0;
  #chunks = 0;
  /** Its chunks have numbers, unless a server that knows none has got some of them. */
  numbersChunks = true;
  /** The last value to show. */
  pendingProgress = '';

  constructor(job: Job, lease: string, outbox: ChannelJobOutbox) {
    this.job = job;
    this.lease = lease;
    this.leaseName = `${job.id} ${lease}`;
    this.#outbox = outbox;
  }

  progress(value: string): void {
    if (this.#httpJob !== undefined) this.#httpJob.progress(value);
    else this.#outbox.sendProgress(this, value);
  }

  chunk(body: string): Promise<void> | undefined {
    this.#chunks += 1;
    return this.#httpJob === undefined
      ? this.#outbox.sendChunk(this, { number: this.#chunks, body })
      : this.#httpJob.chunk(body, this.chunkId(this.#chunks));
  }

  /** What names one of its chunks, so that it is kept once however often it is sent. */
  chunkId(number: number): string | undefined {
    return this.numbersChunks ? `${this.lease}~${number}` : undefined;
  }

  finish(body: string, streamed: boolean): Promise<void> | undefined {
    if (this.#httpJob === undefined) return this.#outbox.sendResult(this, body, streamed);
    this.#outbox.forget(this);
    return this.#httpJob.finish(body, streamed);
  }

  recordWait(milliseconds: number): void {
    this.waitedMs = Math.floor(milliseconds);
  }

  returnToQueue(): boolean {
    return this.#httpJob === undefined && this.#outbox.sendReturn(this);
  }

  abandon(): void {
    this.#httpJob?.abandon();
    this.#outbox.forget(this);
  }

  /** From now on over HTTP. */
  moveToHttp(elsewhere: TakenJob): TakenJob {
    this.#httpJob ??= elsewhere;
    return this.#httpJob;
  }
}
