import type { ApiClient } from '../api-client.ts';
import { CommandExit, EXIT_INTERRUPTED, EXIT_TIMED_OUT } from '../cli.errors.ts';
import { shortenReason } from '../output.ts';
import { REMINDER_MS } from '../report-changes.ts';
import { jobPath } from './endpoint-client.ts';
import type { EndpointForJobs } from './endpoint-client.ts';
import { cancelJob, isUnfinished, streamJobOutput, waitForJob } from './job-client.ts';
import type { JobView } from './job-client.ts';

export interface WatchOptions {
  /** One line about how the job continues. */
  report(line: string): void;
  withinMs: number;
  /** Ctrl-C. */
  interrupt: AbortSignal | undefined;
  cancelsOnInterrupt: boolean;
  /** How the user calls berth. */
  program: string;
}

/** A job that the user waits for, with a line for each change of its state. */
export class WatchedJob {
  readonly #client: ApiClient;
  readonly #endpoint: EndpointForJobs;
  /** As it was last seen. */
  #job: JobView;
  #lastReported: string | undefined;
  #hasOutput = false;
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
    const reminders = this.#remind();
    const found = await waitForJob(this.#client, this.#endpoint, this.#job, {
      withinMs: Math.max(0, this.#options.withinMs - (performance.now() - this.#startedAt)),
      signal: this.#options.interrupt,
      onChange: (job) => this.#onChange(job),
    }).finally(() => clearInterval(reminders));
    if (this.#options.interrupt?.aborted === true && isUnfinished(found)) await this.#interrupted();
    return found;
  }

  /** What the handler yields, as it comes. Reports until the first of it; `end` reports how the job ended. */
  async *stream(): AsyncGenerator<{ output: unknown }> {
    const begun = new AbortController();
    const reminders = this.#remind();
    const reporting = waitForJob(this.#client, this.#endpoint, this.#job, {
      signal: AbortSignal.any([begun.signal, this.#over]),
      onChange: (job) => this.#onChange(job, { reportsEnd: false }),
    }).catch(() => undefined);
    try {
      for await (const chunk of streamJobOutput(this.#client, this.#endpoint, this.#job.id, this.#over)) {
        this.#hasOutput = true;
        begun.abort();
        yield chunk;
      }
    } finally {
      begun.abort();
      clearInterval(reminders);
      await reporting;
    }
    if (this.#options.interrupt?.aborted === true) await this.#interrupted();
    if (this.#over.aborted) {
      const found = await this.#client.get<JobView>(jobPath(this.#endpoint, `status/${this.#job.id}`));
      if (isUnfinished(found)) throw this.timeOut(found);
    }
  }

  /** Says that the time is over, and how to continue. */
  timeOut({ id, status, reason }: JobView): CommandExit {
    const { report, withinMs } = this.#options;
    report(`berth: job ${id} is still ${status} after ${formatSeconds(withinMs)}${formatReason(reason)}`);
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
    const job = `${this.#endpoint.name} ${this.#job.id}`;
    const { report, program } = this.#options;
    report('berth: the job goes on; to watch or to cancel it:');
    for (const verb of ['watch', 'cancel']) report(`  ${program} job ${verb} ${job}`);
  }

  #onChange(job: JobView, { reportsEnd } = { reportsEnd: true }): void {
    this.#job = job;
    // After the first output, an answer that the job waits or runs is outdated: it came late.
    if (isUnfinished(job) ? !this.#hasOutput : reportsEnd) this.#report(job);
  }

  /** Says again and again how the job stands, until its first output. */
  #remind(): NodeJS.Timeout {
    return setInterval(() => {
      if (!this.#hasOutput && isUnfinished(this.#job))
        this.#options.report(`${this.#since()}  still ${describeState(this.#job)}`);
    }, REMINDER_MS);
  }

  #since(): string {
    return formatSeconds(performance.now() - this.#startedAt);
  }

  /** The first line names the job. */
  #report(job: JobView): void {
    const state = describeState(job);
    if (state === this.#lastReported) return;
    const isFirst = this.#lastReported === undefined;
    this.#lastReported = state;
    this.#options.report(`${this.#since()}  ${isFirst ? `job ${job.id} ` : ''}${state}`);
  }
}

function describeState({ status, reason, workerId }: JobView): string {
  if (status === 'IN_QUEUE') return `waits in the queue${formatReason(reason)}`;
  if (status !== 'IN_PROGRESS') return `is ${status}`;
  return workerId === undefined || workerId === '' ? 'runs' : `runs on worker ${workerId}`;
}

/** Why a job waits, where that is known. */
function formatReason(reason: string | undefined): string {
  return reason === undefined ? '' : `: ${shortenReason(reason)}`;
}

function formatSeconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(milliseconds < 10_000 ? 1 : 0)} s`;
}
