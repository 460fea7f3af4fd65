import type { Job } from '../handler.ts';
import type { Delivery } from '../job-source.ts';
import type { Outbox } from './outbox.ts';

/** A job that came over the channel. What it says goes over the channel too, or over HTTP where there is none any more. */
export class FastDelivery implements Delivery {
  readonly job: Job;
  readonly lease: string;
  /** What names this attempt in every line. */
  readonly name: string;
  readonly #outbox: Outbox;
  #elsewhere: Delivery | undefined;
  /** Whole milliseconds between its arrival and its begin. */
  waitedMs = 0;
  #chunks = 0;
  /** Its chunks have numbers, unless a server that knows none has got some of them. */
  numbered = true;
  /** The last value to show. */
  progressToSend = '';

  constructor(job: Job, lease: string, outbox: Outbox) {
    this.job = job;
    this.lease = lease;
    this.name = `${job.id} ${lease}`;
    this.#outbox = outbox;
  }

  progress(value: string): void {
    if (this.#elsewhere !== undefined) this.#elsewhere.progress(value);
    else this.#outbox.sendProgress(this, value);
  }

  chunk(body: string): Promise<void> | undefined {
    this.#chunks += 1;
    return this.#elsewhere === undefined
      ? this.#outbox.sendChunk(this, { number: this.#chunks, body })
      : this.#elsewhere.chunk(body, this.markOf(this.#chunks));
  }

  /** What names one of its chunks, so that it is kept once however often it is sent. */
  markOf(number: number): string | undefined {
    return this.numbered ? `${this.lease}~${number}` : undefined;
  }

  finish(body: string, streamed: boolean): Promise<void> | undefined {
    if (this.#elsewhere === undefined) return this.#outbox.sendResult(this, body, streamed);
    this.#outbox.forget(this);
    return this.#elsewhere.finish(body, streamed);
  }

  waited(milliseconds: number): void {
    this.waitedMs = Math.floor(milliseconds);
  }

  giveBack(): boolean {
    return this.#elsewhere === undefined && this.#outbox.sendBack(this);
  }

  drop(): void {
    this.#elsewhere?.drop();
    this.#outbox.forget(this);
  }

  /** From now on over HTTP. */
  moveTo(elsewhere: Delivery): Delivery {
    this.#elsewhere ??= elsewhere;
    return this.#elsewhere;
  }
}
