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

/** The polls that run while jobs come over HTTP. They end in two steps: first the takes, then the rest. */
interface PollLoops {
  takeLoop: TakeLoop;
  abortLoops: AbortController;
}

/** Takes jobs by the public worker protocol: long polls that the server holds until it has an answer. */
export class HttpSource implements JobSource {
  readonly #options: HttpSourceOptions;
  readonly #http: HttpClient;
  readonly #posts: JobPosts;
  #polls: PollLoops | undefined;

  constructor(options: HttpSourceOptions) {
    this.#options = options;
    this.#http = new HttpClient(options.apiKey, options.timings.partialResponseTimeout);
    this.#posts = new JobPosts({ ...options, http: this.#http });
  }

  /** The HTTP delivery for a job that came over the channel. */
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

  /** Stops takes, pings and polls, because jobs now come over the channel. Pending posts are still sent. */
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
