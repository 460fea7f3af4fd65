import { errorMessage } from '../error-report.ts';
import type { WorkerLog } from '../worker-log.ts';
import { Backoff } from '../timings.ts';
import type { Timings } from '../timings.ts';
import { delay } from '../delay.ts';
import type { WorkerUrls } from './worker-urls.ts';
import { InvalidRequestError } from './http-client.ts';
import type { HttpClient } from './http-client.ts';
import { rateLimitDelayMs } from './poll-delays.ts';

export interface JobPostsOptions {
  urls: WorkerUrls;
  http: HttpClient;
  log: WorkerLog;
  timings: Timings;
}

/** Progress is tried once, with a short timeout. */
const PROGRESS_MS = 5_000;

export type PostOutcome = 'accepted' | 'later' | 'refused' | 'too large' | 'impossible';

export interface ChunkPost {
  body: string;
  chunkId: string | undefined;
  /** Whether it is tried again where it is refused. */
  retryIfRefused: boolean;
}

interface Post {
  url: string;
  jobId: string;
  body: string;
  chunkId?: string | undefined;
  unwanted: AbortSignal;
}

interface PostAttempt {
  outcome: PostOutcome;
  why: string;
  /** From Retry-After, where the server sends it. */
  pauseMs?: number;
}

/** Posts progress, chunks and results over HTTP. */
export class JobPosts {
  readonly #options: JobPostsOptions;
  #leftAt: number | undefined;
  #hasLoggedMissingStream = false;

  constructor(options: JobPostsOptions) {
    this.#options = options;
  }

  /** The worker is stopping: retries are limited from now on. */
  startFinalDeadline(): void {
    this.#leftAt ??= performance.now();
  }

  /**
   * Sends a result until it is acknowledged. It may arrive twice and counts once. It is dropped only when it
   * is no longer wanted, is refused permanently, or the worker stopped long ago.
   */
  async result(jobId: string, body: string, streamed: boolean, unwanted: AbortSignal): Promise<void> {
    const { urls, log, timings } = this.#options;
    const post: Post = { url: urls.done(jobId, streamed), jobId, body, unwanted };
    if ((await this.#postWithRetries('result', post, timings.refusedResultRetry)) !== 'too large') return;
    log.error(
      `The result of ${Buffer.byteLength(body)} bytes is larger than the server accepts; the job fails.`,
      jobId,
    );
    const error = JSON.stringify({
      error: `the result of ${Buffer.byteLength(body)} bytes is larger than the server accepts`,
    });
    const outcome = await this.#postWithRetries(
      'result',
      { ...post, body: error },
      timings.refusedResultRetry,
    );
    if (outcome === 'too large')
      log.error('The result was given up: not even the error is small enough for the server', jobId);
  }

  async chunk(
    jobId: string,
    { body, chunkId, retryIfRefused }: ChunkPost,
    unwanted: AbortSignal,
  ): Promise<PostOutcome | undefined> {
    const { urls, log, timings } = this.#options;
    const address = urls.stream(jobId);
    if (address === undefined) {
      if (!this.#hasLoggedMissingStream)
        log.warn('RUNPOD_WEBHOOK_POST_STREAM is not set: chunks are not sent', jobId);
      this.#hasLoggedMissingStream = true;
      return undefined;
    }
    const outcome = await this.#postWithRetries(
      'chunk',
      { url: address, jobId, body, chunkId, unwanted },
      retryIfRefused ? timings.refusedResultRetry : 0,
    );
    if (outcome === 'too large')
      log.error(
        `A chunk of ${Buffer.byteLength(body)} bytes is larger than the server accepts and is left ` +
          'out. Yield it in smaller pieces.',
        jobId,
      );
    return outcome;
  }

  async progress(jobId: string, value: string, unwanted: AbortSignal): Promise<void> {
    await this.#once(
      {
        url: this.#options.urls.done(jobId, false),
        jobId,
        body: `{"status":"IN_PROGRESS","output":${value}}`,
        unwanted,
      },
      PROGRESS_MS,
    );
  }

  async #postWithRetries(what: string, post: Post, refusedMs: number): Promise<PostOutcome> {
    const { timings, log } = this.#options;
    const { jobId, unwanted } = post;
    const backoff = new Backoff(timings);
    const startedAt = performance.now();
    for (;;) {
      const { outcome, why, pauseMs } = await this.#once(post, timings.postTimeout);
      if (outcome === 'accepted' || outcome === 'too large' || unwanted.aborted) return outcome;
      if (this.#isGivenUp(outcome, startedAt, refusedMs)) {
        log.error(`The ${what} was given up: ${why}`, jobId);
        return outcome;
      }
      log.warn(`The ${what} was not accepted and is sent again: ${why}`, jobId);
      await delay(pauseMs ?? backoff.next(), unwanted);
    }
  }

  #isGivenUp(outcome: PostOutcome, startedAt: number, refusedMs: number): boolean {
    if (outcome === 'impossible') return true;
    if (outcome === 'refused') return performance.now() - startedAt >= refusedMs;
    return (
      this.#leftAt !== undefined &&
      performance.now() - Math.max(startedAt, this.#leftAt) > this.#options.timings.finalResultDeadline
    );
  }

  async #once({ url, jobId, body, chunkId, unwanted }: Post, silenceMs: number): Promise<PostAttempt> {
    try {
      const answer = await this.#options.http.request(url, {
        body,
        jobId,
        idleTimeoutMs: silenceMs,
        signal: unwanted,
        ...(chunkId === undefined ? {} : { chunkId }),
      });
      const tried = { outcome: outcomeOf(answer.status), why: `the server answered ${answer.status}` };
      return answer.status === 429
        ? { ...tried, pauseMs: rateLimitDelayMs(answer, this.#options.timings) }
        : tried;
    } catch (error) {
      return {
        outcome: error instanceof InvalidRequestError ? 'impossible' : 'later',
        why: errorMessage(error),
      };
    }
  }
}

/**
 * Three of the 4xx statuses are temporary. So is every status that is not a refusal, such as a redirect that
 * could not be followed.
 */
function outcomeOf(status: number): PostOutcome {
  if (status >= 200 && status < 300) return 'accepted';
  if (status === 413) return 'too large';
  return status >= 400 && status < 500 && status !== 408 && status !== 425 && status !== 429
    ? 'refused'
    : 'later';
}
