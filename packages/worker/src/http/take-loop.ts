import { errorMessage } from '../error-report.ts';
import type { Job } from '../handler.ts';
import { Backoff } from '../timings.ts';
import { nextEventLoopTurn, delay } from '../delay.ts';
import { HttpJob } from './http-job.ts';
import type { HttpResponse } from './http-client.ts';
import type { PollContext } from './poll-context.ts';
import { emptyPollDelayMs, rateLimitDelayMs } from './poll-delays.ts';

/**
 * Long-polls for jobs while there is room: one request at a time, for as many jobs as there is room for. An
 * aborted request is dropped, unless its response has started: that is read and its jobs are delivered. When
 * the loop stops, the response must complete soon.
 */
export class TakeLoop {
  readonly #polling: PollContext;
  readonly #backoff: Backoff;
  readonly #closing = new AbortController();
  /** Aborts the open request, unless its response has started. */
  #question = new AbortController();
  #onRoom: () => void = () => undefined;
  /** The reason why no jobs came that was logged last. */
  #loggedReason = '';
  readonly #ended: Promise<void>;

  constructor(polling: PollContext) {
    this.#polling = polling;
    this.#backoff = new Backoff(polling.timings);
    this.#ended = this.#take();
  }

  capacityGrew(): void {
    this.#onRoom();
  }

  /** The open request may ask for more than there is room for now. The next one does not. */
  async capacityShrank(): Promise<void> {
    const question = this.#question;
    await untilResponsesRead();
    question.abort();
  }

  async stop(): Promise<void> {
    await untilResponsesRead();
    this.#closing.abort();
    this.#onRoom();
    await this.#ended;
  }

  async #take(): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      const room = this.#polling.consumer.capacity();
      if (room === 0) await new Promise<void>((resolve) => (this.#onRoom = resolve));
      else await delay(await this.#takeOnce(room), signal);
    }
  }

  /** Returns how long to wait before the next request. */
  async #takeOnce(room: number): Promise<number> {
    const { urls, http, posts, consumer, log, timings } = this.#polling;
    this.#question = new AbortController();
    const [signal, unlessBegun] = [this.#closing.signal, this.#question.signal];
    const askedAt = Date.now();
    let why: string;
    try {
      const answer = await http.request(urls.take(room, consumer.jobIds().length > 0), {
        idleTimeoutMs: timings.pollTimeout,
        signal,
        signalBeforeResponse: unlessBegun,
      });
      if (answer.status === 429) {
        this.#logReason(answer);
        return rateLimitDelayMs(answer, timings);
      }
      // The hosted service answers 400 to a worker that it has just started.
      if (answer.status === 200 || answer.status === 204 || answer.status === 400) {
        this.#backoff.reset();
        this.#loggedReason = '';
        const found = answer.status === 200 ? jobsOf(answer.json) : { jobs: [], malformed: 0 };
        for (const job of found.jobs) consumer.deliver(new HttpJob(job, posts));
        if (found.malformed > 0)
          log.error(
            `The server answered ${found.malformed} jobs without an id that is text; they are left out.`,
          );
        return found.jobs.length > 0 ? 0 : emptyPollDelayMs(askedAt, timings);
      }
      why = refusalReason(answer);
    } catch (error) {
      why = errorMessage(error);
    }
    if (signal.aborted || unlessBegun.aborted) return 0;
    log.warn(`No jobs could be taken: ${why}`);
    return this.#backoff.next();
  }

  /**
   * Logs each reason once: a worker that is refused permanently must not be silent, and one that is refused
   * often must not flood the log.
   */
  #logReason(answer: HttpResponse): void {
    const why = refusalReason(answer);
    if (why !== this.#loggedReason) this.#polling.log.warn(`No jobs for now: ${why}`);
    this.#loggedReason = why;
  }
}

/** The reason that a server gives for a refusal, if any. */
function refusalReason({ status, json }: HttpResponse): string {
  const reason =
    typeof json === 'object' && json !== null && 'error' in json && typeof json.error === 'string'
      ? `: ${json.error}`
      : '';
  return `the server answered ${status}${reason}`;
}

/**
 * A response that has arrived but is not read yet gets the time to be read: for the server its jobs are
 * delivered.
 */
async function untilResponsesRead(): Promise<void> {
  await nextEventLoopTurn();
  await nextEventLoopTurn();
}

/** One job or a list of jobs. Every job has an id that is a string. */
function jobsOf(json: unknown): { jobs: Job[]; malformed: number } {
  const found: unknown[] = Array.isArray(json) ? json : json === undefined || json === null ? [] : [json];
  const jobs = found.filter((job): job is Job => isJob(job));
  return { jobs, malformed: found.length - jobs.length };
}

export function isJob(value: unknown): value is Job {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    typeof value.id === 'string' &&
    value.id !== ''
  );
}
