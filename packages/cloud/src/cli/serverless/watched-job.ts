import type { ApiClient } from '../api-client.ts';
import { CommandExit, EXIT_INTERRUPTED, EXIT_TIMED_OUT } from '../cli.errors.ts';
import { jobPath } from './endpoint-client.ts';
import type { EndpointForJobs } from './endpoint-client.ts';
import { cancelJob, isUnfinished, streamJobOutput, waitForJob } from './job-client.ts';
import type { JobView } from './job-client.ts';

export interface WatchOptions {
  /** One line about how the job goes on. */
  report(line: string): void;
  withinMs: number;
  /** Ctrl-C. */
  interrupt: AbortSignal | undefined;
  cancelsOnInterrupt: boolean;
}

/** A job that the user waits for: nobody waits without being told what for. */
export class WatchedJob {
  readonly #client: ApiClient;
  readonly #endpoint: EndpointForJobs;
  readonly #job: JobView;
  readonly #options: WatchOptions;
  readonly #startedAt = performance.now();
  readonly #over: AbortSignal;

  constructor(client: ApiClient, endpoint: EndpointForJobs, job: JobView, options: WatchOptions) {
    this.#client = client;
    this.#endpoint = endpoint;
    this.#job = job;
    this.#options = options;
    const { withinMs, interrupt } = options;
    this.#over = AbortSignal.any([
      ...(withinMs === Infinity ? [] : [AbortSignal.timeout(withinMs)]),
      ...(interrupt === undefined ? [] : [interrupt]),
    ]);
  }

  /** The job when it has ended or the time is over. Ends the command after Ctrl-C. */
  async end(): Promise<JobView> {
    const found = await waitForJob(this.#client, this.#endpoint, this.#job, {
      withinMs: Math.max(0, this.#options.withinMs - (performance.now() - this.#startedAt)),
      signal: this.#options.interrupt,
      onChange: (job) => this.#report(job),
    });
    if (this.#options.interrupt?.aborted === true && isUnfinished(found)) await this.#interrupted();
    return found;
  }

  /** What the handler yields, as it comes. Reports until the first of it. */
  async *stream(): AsyncGenerator<{ output: unknown }> {
    const begun = new AbortController();
    const reporting = waitForJob(this.#client, this.#endpoint, this.#job, {
      signal: AbortSignal.any([begun.signal, this.#over]),
      onChange: (job) => this.#report(job),
    }).catch(() => undefined);
    try {
      for await (const chunk of streamJobOutput(this.#client, this.#endpoint, this.#job.id, this.#over)) {
        begun.abort();
        yield chunk;
      }
    } finally {
      begun.abort();
      await reporting;
    }
    if (this.#options.interrupt?.aborted === true) await this.#interrupted();
    if (this.#over.aborted) {
      const found = await this.#client.get<JobView>(jobPath(this.#endpoint, `status/${this.#job.id}`));
      if (isUnfinished(found)) throw this.timeOut(found);
    }
  }

  /** Says that the time is over, and how to go on. */
  timeOut({ id, status, reason }: JobView): CommandExit {
    const { report, withinMs } = this.#options;
    report(
      `berth: job ${id} is still ${status} after ${formatSeconds(withinMs)}${reason === undefined ? '' : `: ${reason}`}`,
    );
    this.#reportHowToGoOn();
    return new CommandExit(EXIT_TIMED_OUT);
  }

  async #interrupted(): Promise<never> {
    const { report, cancelsOnInterrupt } = this.#options;
    if (cancelsOnInterrupt) {
      const { status } = await cancelJob(this.#client, this.#endpoint, this.#job.id);
      report(`berth: job ${this.#job.id} is ${status}`);
    } else this.#reportHowToGoOn();
    throw new CommandExit(EXIT_INTERRUPTED);
  }

  #reportHowToGoOn(): void {
    const { name } = this.#endpoint;
    this.#options.report(
      `berth: the job goes on. Watch it: berth job watch ${name} ${this.#job.id}; cancel it: berth job cancel ${name} ${this.#job.id}`,
    );
  }

  #report({ id, status, reason, workerId }: JobView): void {
    const since = formatSeconds(performance.now() - this.#startedAt);
    const state = {
      IN_QUEUE: `waits in the queue${reason === undefined ? '' : `: ${reason}`}`,
      IN_PROGRESS: `runs${workerId === undefined || workerId === '' ? '' : ` on worker ${workerId}`}`,
    }[status];
    this.#options.report(`${since}  job ${id} ${state ?? `is ${status}`}`);
  }
}

function formatSeconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(milliseconds < 10_000 ? 1 : 0)} s`;
}
