import { messageOf } from '../failure.ts';
import type { Job } from '../handler.ts';
import { Backoff } from '../pace.ts';
import { nextTurn, pause } from '../pause.ts';
import { PublicDelivery } from './delivery.ts';
import type { Answer } from './http-client.ts';
import { pauseAfterEmpty, pauseAfterTooMany } from './polling.ts';
import type { Polling } from './polling.ts';

/**
 * Asks for jobs as long as there is room for some: one question at a time, for as many as there
 * is room for. A question that is ended is not read any more, but where its answer has begun to
 * come, that is read, and its jobs are delivered. At the end of all, it has to come soon.
 */
export class Takes {
  readonly #polling: Polling;
  readonly #backoff: Backoff;
  readonly #over = new AbortController();
  /** Ends the open question, unless its answer has begun. */
  #question = new AbortController();
  #onRoom: () => void = () => undefined;
  /** Why no jobs came, as it was last said. */
  #saidWhy = '';
  readonly #ended: Promise<void>;

  constructor(polling: Polling) {
    this.#polling = polling;
    this.#backoff = new Backoff(polling.pace);
    this.#ended = this.#take();
  }

  roomGrew(): void {
    this.#onRoom();
  }

  /** The open question may ask for more than there is room for now. The next one does not. */
  async roomShrank(): Promise<void> {
    const question = this.#question;
    await answersAreRead();
    question.abort();
  }

  async end(): Promise<void> {
    await answersAreRead();
    this.#over.abort();
    this.#onRoom();
    await this.#ended;
  }

  async #take(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      const room = this.#polling.consumer.room();
      if (room === 0) await new Promise<void>((resolve) => (this.#onRoom = resolve));
      else await pause(await this.#takeOnce(room), signal);
    }
  }

  /** Answers how long to wait before the next question. */
  async #takeOnce(room: number): Promise<number> {
    const { addresses, http, posts, consumer, log, pace } = this.#polling;
    this.#question = new AbortController();
    const [signal, unlessBegun] = [this.#over.signal, this.#question.signal];
    const askedAt = Date.now();
    let why: string;
    try {
      const answer = await http.ask(addresses.take(room, consumer.held().length > 0), {
        silenceMs: pace.poll,
        signal,
        unlessBegun,
      });
      if (answer.status === 429) {
        this.#sayWhy(answer);
        return pauseAfterTooMany(answer, pace);
      }
      // 400 is what the hosted service answers to a worker that it has just woken up.
      if (answer.status === 200 || answer.status === 204 || answer.status === 400) {
        this.#backoff.reset();
        this.#saidWhy = '';
        const found = answer.status === 200 ? jobsOf(answer.json) : { jobs: [], malformed: 0 };
        for (const job of found.jobs) consumer.deliver(new PublicDelivery(job, posts));
        if (found.malformed > 0)
          log.error(
            `The server answered ${found.malformed} jobs without an id that is text; they are left out.`,
          );
        return found.jobs.length > 0 ? 0 : pauseAfterEmpty(askedAt, pace);
      }
      why = reasonOf(answer);
    } catch (error) {
      why = messageOf(error);
    }
    if (signal.aborted || unlessBegun.aborted) return 0;
    log.warn(`No jobs could be taken: ${why}`);
    return this.#backoff.next();
  }

  /** Once for each reason: a worker that is sent away for good must not be silent, and one that is sent away often must not be loud. */
  #sayWhy(answer: Answer): void {
    const why = reasonOf(answer);
    if (why !== this.#saidWhy) this.#polling.log.warn(`No jobs for now: ${why}`);
    this.#saidWhy = why;
  }
}

/** What a server says of a refusal, where it says anything. */
function reasonOf({ status, json }: Answer): string {
  const said =
    typeof json === 'object' && json !== null && 'error' in json && typeof json.error === 'string'
      ? `: ${json.error}`
      : '';
  return `the server answered ${status}${said}`;
}

/** An answer that is already here, only not read yet, gets the time to be read: its jobs count as delivered for the server. */
async function answersAreRead(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

/** One job or a list of jobs, whichever was asked for. Every job has an id that is text. */
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
