import type { Job } from '../handler.ts';
import type { TakenJob } from '../job-source.ts';

export interface NumberedChunk {
  number: number;
  body: string;
}

/** Sends progress, chunks and results of a job. */
export interface ChannelJobOutbox {
  sendProgress(job: ChannelJob, value: string): void;
  /** Resolves when there is room for the next chunk. */
  sendChunk(job: ChannelJob, chunk: NumberedChunk): Promise<void> | undefined;
  sendResult(job: ChannelJob, body: string, streamed: boolean): Promise<void> | undefined;
  /** Returns an unstarted job to the queue; false where the server does not support that. */
  sendReturn(job: ChannelJob): boolean;
  forget(job: ChannelJob): void;
}

/**
 * A job that came over the channel. It reports over the channel too, or over HTTP once the channel is gone.
 */
export class ChannelJob implements TakenJob {
  readonly job: Job;
  readonly lease: string;
  /** Identifies this attempt in every line. */
  readonly leaseName: string;
  readonly #outbox: ChannelJobOutbox;
  #httpJob: TakenJob | undefined;
  /** Whole milliseconds between its arrival and its start. */
  waitedMs = 0;
  #chunks = 0;
  /** Its chunks are numbered, unless some were already sent to a server that does not support numbers. */
  numbersChunks = true;
  /** The latest progress value. */
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

  /** Identifies one of its chunks, so that the server stores it once however often it is sent. */
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

  /** Switches to HTTP for the rest of the job. */
  moveToHttp(httpJob: TakenJob): TakenJob {
    this.#httpJob ??= httpJob;
    return this.#httpJob;
  }
}
