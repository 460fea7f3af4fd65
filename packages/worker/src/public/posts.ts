import { messageOf } from '../failure.ts';
import type { Log } from '../log.ts';
import { Backoff } from '../pace.ts';
import type { Pace } from '../pace.ts';
import { pause } from '../pause.ts';
import type { Addresses } from './addresses.ts';
import { UnsendableRequest } from './http-client.ts';
import type { HttpClient } from './http-client.ts';
import { pauseAfterTooMany } from './polling.ts';

export interface PostsParts {
  addresses: Addresses;
  http: HttpClient;
  log: Log;
  pace: Pace;
}

/** Progress is worth one try, and not a long one. */
const PROGRESS_MS = 5_000;

export type Outcome = 'accepted' | 'later' | 'refused' | 'too large' | 'impossible';

export interface Chunk {
  body: string;
  mark: string | undefined;
  /** Whether it is tried again where it is refused. */
  patient: boolean;
}

interface Post {
  address: string;
  jobId: string;
  body: string;
  mark?: string | undefined;
  unwanted: AbortSignal;
}

interface Try {
  outcome: Outcome;
  why: string;
  /** Where the server says when to come back. */
  pauseMs?: number;
}

/** What a worker sends about its jobs over HTTP. */
export class Posts {
  readonly #parts: PostsParts;
  #leftAt: number | undefined;
  #saidThatStreamIsMissing = false;

  constructor(parts: PostsParts) {
    this.#parts = parts;
  }

  /** The worker stops: patience has an end from now on. */
  leave(): void {
    this.#leftAt ??= performance.now();
  }

  /**
   * Sends a result until it is acknowledged. It may arrive twice, and counts once. Given up only when it
   * is no longer wanted, is refused for good, or the worker has stopped long ago.
   */
  async result(jobId: string, body: string, streamed: boolean, unwanted: AbortSignal): Promise<void> {
    const { addresses, log, pace } = this.#parts;
    const post: Post = { address: addresses.done(jobId, streamed), jobId, body, unwanted };
    if ((await this.#insist('result', post, pace.refusedResult)) !== 'too large') return;
    log.error(
      `The result of ${Buffer.byteLength(body)} bytes is larger than the server accepts; the job fails.`,
      jobId,
    );
    const error = JSON.stringify({
      error: `the result of ${Buffer.byteLength(body)} bytes is larger than the server accepts`,
    });
    const outcome = await this.#insist('result', { ...post, body: error }, pace.refusedResult);
    if (outcome === 'too large')
      log.error('The result was given up: not even the error is small enough for the server', jobId);
  }

  async chunk(
    jobId: string,
    { body, mark, patient }: Chunk,
    unwanted: AbortSignal,
  ): Promise<Outcome | undefined> {
    const { addresses, log, pace } = this.#parts;
    const address = addresses.stream(jobId);
    if (address === undefined) {
      if (!this.#saidThatStreamIsMissing)
        log.warn('RUNPOD_WEBHOOK_POST_STREAM is not set: chunks are not sent', jobId);
      this.#saidThatStreamIsMissing = true;
      return undefined;
    }
    const outcome = await this.#insist(
      'chunk',
      { address, jobId, body, mark, unwanted },
      patient ? pace.refusedResult : 0,
    );
    if (outcome === 'too large')
      log.error(
        `A chunk of ${Buffer.byteLength(body)} bytes is larger than the server accepts and is left out. Yield it in smaller pieces.`,
        jobId,
      );
    return outcome;
  }

  async progress(jobId: string, value: string, unwanted: AbortSignal): Promise<void> {
    await this.#once(
      {
        address: this.#parts.addresses.done(jobId, false),
        jobId,
        body: `{"status":"IN_PROGRESS","output":${value}}`,
        unwanted,
      },
      PROGRESS_MS,
    );
  }

  async #insist(what: string, post: Post, refusedMs: number): Promise<Outcome> {
    const { pace, log } = this.#parts;
    const { jobId, unwanted } = post;
    const backoff = new Backoff(pace);
    const startedAt = performance.now();
    for (;;) {
      const { outcome, why, pauseMs } = await this.#once(post, pace.post);
      if (outcome === 'accepted' || outcome === 'too large' || unwanted.aborted) return outcome;
      if (this.#isGivenUp(outcome, startedAt, refusedMs)) {
        log.error(`The ${what} was given up: ${why}`, jobId);
        return outcome;
      }
      log.warn(`The ${what} was not accepted and is sent again: ${why}`, jobId);
      await pause(pauseMs ?? backoff.next(), unwanted);
    }
  }

  #isGivenUp(outcome: Outcome, startedAt: number, refusedMs: number): boolean {
    if (outcome === 'impossible') return true;
    if (outcome === 'refused') return performance.now() - startedAt >= refusedMs;
    return (
      this.#leftAt !== undefined &&
      performance.now() - Math.max(startedAt, this.#leftAt) > this.#parts.pace.lastResult
    );
  }

  async #once({ address, jobId, body, mark, unwanted }: Post, silenceMs: number): Promise<Try> {
    try {
      const answer = await this.#parts.http.ask(address, {
        body,
        jobId,
        silenceMs,
        signal: unwanted,
        ...(mark === undefined ? {} : { mark }),
      });
      const tried = { outcome: outcomeOf(answer.status), why: `the server answered ${answer.status}` };
      return answer.status === 429
        ? { ...tried, pauseMs: pauseAfterTooMany(answer, this.#parts.pace) }
        : tried;
    } catch (error) {
      return { outcome: error instanceof UnsendableRequest ? 'impossible' : 'later', why: messageOf(error) };
    }
  }
}

/** Of 4xx, three mean that it may go well later. So does whatever is no refusal, such as a redirect that could not be followed. */
function outcomeOf(status: number): Outcome {
  if (status >= 200 && status < 300) return 'accepted';
  if (status === 413) return 'too large';
  return status >= 400 && status < 500 && status !== 408 && status !== 425 && status !== 429
    ? 'refused'
    : 'later';
}
