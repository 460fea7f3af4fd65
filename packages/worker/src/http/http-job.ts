import type { Job } from '../handler.ts';
import type { TakenJob } from '../job-source.ts';
import type { JobPosts } from './job-posts.ts';

/** How many chunks may be in flight before the handler has to wait. They are posted one by one, in order. */
const MAX_PENDING_CHUNKS = 16;

/** A job whose progress, chunks and result go over HTTP. */
export class HttpJob implements TakenJob {
  readonly job: Job;
  readonly #posts: JobPosts;
  readonly #dropped = new AbortController();
  #chunksInFlight = 0;
  #lastChunk: Promise<void> = Promise.resolve();
  /** A chunk was refused for so long that it was dropped. From then on one refusal is enough. */
  #chunksRefused = false;
  /** The latest value that is not being sent yet; it replaces earlier ones. */
  #progress: string | undefined;
  #progressing: Promise<void> | undefined;

  constructor(job: Job, posts: JobPosts) {
    this.job = job;
    this.#posts = posts;
  }

  progress(value: string): void {
    this.#progress = value;
    this.#progressing ??= this.#sendProgress();
  }

  chunk(body: string, chunkId?: string): Promise<void> | undefined {
    this.#chunksInFlight += 1;
    this.#lastChunk = this.#lastChunk.then(async () => {
      if (!this.#dropped.signal.aborted) await this.#sendChunk(body, chunkId);
      this.#chunksInFlight -= 1;
    });
    return this.#chunksInFlight < MAX_PENDING_CHUNKS ? undefined : this.#lastChunk;
  }

  async finish(body: string, streamed: boolean): Promise<void> {
    await this.#lastChunk;
    // Progress that arrives after the result would overwrite it on a careless server.
    this.#progress = undefined;
    await this.#progressing;
    if (!this.#dropped.signal.aborted)
      await this.#posts.result(this.job.id, body, streamed, this.#dropped.signal);
  }

  abandon(): void {
    this.#dropped.abort();
  }

  async #sendChunk(body: string, chunkId: string | undefined): Promise<void> {
    const outcome = await this.#posts.chunk(
      this.job.id,
      { body, chunkId, retryIfRefused: !this.#chunksRefused },
      this.#dropped.signal,
    );
    if (outcome === 'refused') this.#chunksRefused = true;
  }

  async #sendProgress(): Promise<void> {
    while (this.#progress !== undefined && !this.#dropped.signal.aborted) {
      const value = this.#progress;
      this.#progress = undefined;
      await this.#posts.progress(this.job.id, value, this.#dropped.signal);
    }
    this.#progressing = undefined;
  }
}
