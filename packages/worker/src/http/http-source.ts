import type { JobConsumer, TakenJob, JobSource } from '../job-source.ts';
import type { Job } from '../handler.ts';
import type { WorkerLog } from '../worker-log.ts';
import { errorMessage } from '../error-report.ts';
import type { Timings } from '../timings.ts';
import type { WorkerUrls } from './worker-urls.ts';
import { HttpJob } from './http-job.ts';
import { HttpClient } from './http-client.ts';
import { runPingLoop } from './ping-loop.ts';
import type { PollContext } from './poll-context.ts';
import { JobPosts } from './job-posts.ts';
import { pollCancellations } from './cancellation-poll.ts';
import { TakeLoop } from './take-loop.ts';

export interface HttpSourceOptions {
  urls: WorkerUrls;
  apiKey: string;
  pingMs: number;
  log: WorkerLog;
  timings: Timings;
}

/** What is asked all the time while jobs come this way. It ends in two steps: first the takes, then all the rest. */
interface PollLoops {
  takeLoop: TakeLoop;
  abortLoops: AbortController;
}

/** Jobs by the public worker protocol: requests that the server holds until there is something to say. */
export class HttpSource implements JobSource {
  readonly #options: HttpSourceOptions;
  readonly #http: HttpClient;
  readonly #posts: JobPosts;
  #polls: PollLoops | undefined;

  constructor(parts: HttpSourceOptions) {
    this.#options = parts;
    this.#http = new HttpClient(parts.apiKey, parts.timings.partialResponseTimeout);
    this.#posts = new JobPosts({ ...parts, http: this.#http });
  }

  /** The way over HTTP for a job that came otherwise. */
  jobOverHttp(job: Job): TakenJob {
    return new HttpJob(job, this.#posts);
  }

  start(consumer: JobConsumer): void {
    const polling: PollContext = { ...this.#options, http: this.#http, posts: this.#posts, consumer };
    const listening = new AbortController();
    void runPingLoop(polling, listening.signal);
    void pollCancellations(polling, listening.signal);
    this.#polls = { takeLoop: new TakeLoop(polling), abortLoops: listening };
  }

  capacityShrank(): void {
    void this.#polls?.takeLoop.capacityShrank();
  }

  capacityGrew(): void {
    this.#polls?.takeLoop.capacityGrew();
  }

  async stopTaking(): Promise<void> {
    this.#posts.startFinalDeadline();
    await this.#polls?.takeLoop.stop();
  }

  /** Takes, pings and asks no more, for jobs now come another way. What is still to be posted is posted. */
  async suspend(): Promise<void> {
    const polls = this.#polls;
    this.#polls = undefined;
    await polls?.takeLoop.stop();
    polls?.abortLoops.abort();
  }

  async close(): Promise<void> {
    await this.stopTaking();
    this.#polls?.abortLoops.abort();
    this.#http.close();
  }

  async reportUnhealthy(check: string, reason: string): Promise<void> {
    const address = this.#options.urls.unhealthy(check, reason);
    if (address === undefined) return;
    try {
      await this.#http.request(address, { idleTimeoutMs: this.#options.timings.unhealthyReportTimeout });
    } catch (error) {
      this.#options.log.warn(`The failed check could not be reported: ${errorMessage(error)}`);
    }
  }
}
