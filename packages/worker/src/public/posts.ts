import { messageOf } from '../failure.ts';
import type { Log } from '../log.ts';
import { Backoff } from '../pace.ts';
import type { Pace } from '../pace.ts';
import { pause } from '../pause.ts';
import type { Addresses } from './addresses.ts';
import type { HttpClient } from './http-client.ts';

export interface PostsParts {
  addresses: Addresses;
  http: HttpClient;
  log: Log;
  pace: Pace;
}

/** Progress is worth one try, and not a long one. */
const PROGRESS_MS = 5_000;

type Outcome = 'accepted' | 'later' | 'refused' | 'too large';

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
    this.#leftAt ??= Date.now();
  }

  /**
   * Sends a result until it is acknowledged. It may arrive twice, and counts once. Given up only when it
   * is no longer wanted, is refused for good, or the worker has stopped long ago.
   */
  async result(jobId: string, body: string, streamed: boolean, unwanted: AbortSignal): Promise<void> {
    const { addresses, pace, log } = this.#parts;
    const outcome = await this.#insist(addresses.done(jobId, streamed), jobId, body, unwanted, 'result');
    if (outcome !== 'too large') return;
    log.error(`The result of ${Buffer.byteLength(body)} bytes is larger than the server accepts; the job fails.`, jobId);
    const error = JSON.stringify({ error: `the result of ${Buffer.byteLength(body)} bytes is larger than the server accepts` });
    await this.#once(addresses.done(jobId, streamed), jobId, error, unwanted, pace.post);
  }

  async chunk(jobId: string, body: string, mark: string | undefined, unwanted: AbortSignal): Promise<void> {
    const address = this.#parts.addresses.stream(jobId);
    if (address !== undefined) {
      const outcome = await this.#insist(address, jobId, body, unwanted, 'chunk', mark);
      if (outcome === 'too large') this.#parts.log.error(`A chunk of ${Buffer.byteLength(body)} bytes is larger than the server accepts and is left out. Yield it in smaller pieces.`, jobId);
    } else if (!this.#saidThatStreamIsMissing) {
      this.#saidThatStreamIsMissing = true;
      this.#parts.log.warn('RUNPOD_WEBHOOK_POST_STREAM is not set: chunks are not sent', jobId);
    }
  }

  async progress(jobId: string, value: string, unwanted: AbortSignal): Promise<void> {
    await this.#once(this.#parts.addresses.done(jobId, false), jobId, `{"status":"IN_PROGRESS","output":${value}}`, unwanted, PROGRESS_MS);
  }

  async #insist(address: string, jobId: string, body: string, unwanted: AbortSignal, what: string, mark?: string): Promise<Outcome> {
    const { pace, log } = this.#parts;
    const backoff = new Backoff(pace);
    const startedAt = Date.now();
    for (;;) {
      const { outcome, why } = await this.#once(address, jobId, body, unwanted, pace.post, mark);
      if (outcome === 'accepted' || outcome === 'too large' || unwanted.aborted) return outcome;
      const tried = Date.now() - startedAt;
      const givenUp = outcome === 'refused' ? tried > pace.refusedResult : this.#leftAt !== undefined && Date.now() - Math.max(startedAt, this.#leftAt) > pace.lastResult;
      if (givenUp) {
        log.error(`The ${what} was given up: ${why}`, jobId);
        return outcome;
      }
      log.warn(`The ${what} was not accepted and is sent again: ${why}`, jobId);
      await pause(backoff.next(), unwanted);
    }
  }

  async #once(address: string, jobId: string, body: string, signal: AbortSignal, silenceMs: number, mark?: string): Promise<{ outcome: Outcome; why: string }> {
    try {
      const { status } = await this.#parts.http.ask(address, { body, jobId, silenceMs, signal, ...(mark === undefined ? {} : { mark }) });
      return { outcome: outcomeOf(status), why: `the server answered ${status}` };
    } catch (error) {
      return { outcome: 'later', why: messageOf(error) };
    }
  }
}

function outcomeOf(status: number): Outcome {
  if (status >= 200 && status < 300) return 'accepted';
  if (status === 413) return 'too large';
  return status >= 500 || status === 408 || status === 425 || status === 429 ? 'later' : 'refused';
}
