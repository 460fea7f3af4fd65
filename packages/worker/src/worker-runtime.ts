import { AutoJobSource } from './auto-source.ts';
import { JobPool } from './job-pool.ts';
import { updateConcurrency, pollConcurrency } from './dynamic-concurrency.ts';
import type { Stoppable } from './process-lifecycle.ts';
import { readEnvironment } from './worker-environment.ts';
import { reportExits } from './exit-report.ts';
import { runFitnessChecks, UnhealthyError } from './fitness-checks.ts';
import type { Handler } from './handler.ts';
import type { JobSource } from './job-source.ts';
import { WorkerLog } from './worker-log.ts';
import type { Options } from './worker-options.ts';
import { DEFAULT_TIMINGS } from './timings.ts';
import type { Timings } from './timings.ts';
import { delay } from './delay.ts';
import { failureResult } from './job-result.ts';
import { PingThread } from './ping-thread.ts';
import { HttpSource } from './http/http-source.ts';
import { VERSION } from './version.ts';

/** Limits the listed ids; running jobs come first. No server accepts a URL of any length. */
const MAX_PINGED_JOBS = 300;

/** Options for tests. */
export interface WorkerRuntimeOverrides {
  timings?: Timings;
  /** Where log lines go. Default: standard output. */
  writeLogLine?: (line: string) => void;
  /** A second thread that pings while this one is blocked. Default: true. */
  pingThread?: boolean;
}

/**
 * A worker from its first fitness check to its last acknowledgement. It takes jobs until it is stopped or a
 * job asks for a new worker; then it finishes its jobs and is done.
 */
export class WorkerRuntime implements Stoppable {
  readonly #options: Options;
  readonly #timings: Timings;
  readonly #log: WorkerLog;
  readonly #source: JobSource;
  readonly #pool: JobPool;
  readonly #pings: PingThread | undefined;
  readonly #stopReportingExits: () => void;
  readonly #closing = new AbortController();
  #opened = false;
  #stopping = false;
  readonly #stopAsked: Promise<void>;
  #askToStop: () => void = () => undefined;
  #refreshed = false;
  readonly done: Promise<void>;

  constructor(
    handler: Handler,
    options: Options,
    { timings = DEFAULT_TIMINGS, writeLogLine, pingThread = true }: WorkerRuntimeOverrides = {},
  ) {
    const variables = options.env ?? process.env;
    const { urls, apiKey, pingMs, ...identity } = readEnvironment(variables);
    const { concurrency = 1, prefetch = 0, aggregate = false, refreshWorker = false } = options;
    this.#options = options;
    this.#timings = timings;
    this.#log = new WorkerLog(variables, writeLogLine);
    const common = { urls, apiKey, pingMs, log: this.#log, timings };
    const publicSource = new HttpSource(common);
    const address = urls.channel;
    if (options.channel === 'fast' && address === undefined)
      throw new Error(
        "channel: 'fast' needs an address of jobs with /job-take/ in RUNPOD_WEBHOOK_GET_JOB, from " +
          'which that of the channel is made; leave the option out to take jobs over HTTP',
      );
    this.#source =
      options.channel === 'public' || address === undefined
        ? publicSource
        : new AutoJobSource({
            ...common,
            url: address,
            httpSource: publicSource,
            channelOnly: options.channel === 'fast',
          });
    this.#pool = new JobPool({
      handler,
      resultOptions: { aggregate, refreshWorker, identity },
      concurrency: typeof concurrency === 'number' ? concurrency : 1,
      prefetch,
      abortGraceMs: timings.abortGrace,
      log: this.#log,
      onCapacityGrew: () => this.#source.capacityGrew(),
      onCapacityShrank: () => this.#source.capacityShrank?.(),
      onJobsChanged: () => this.#pings?.jobsChanged(),
      onRefreshRequested: () => {
        this.#refreshed = true;
        this.#stop();
      },
    });
    this.#pings =
      !pingThread || urls.ping([]) === undefined
        ? undefined
        : new PingThread({
            apiKey,
            pingMs,
            log: this.#log,
            pingUrl: () => urls.ping(this.#held(), MAX_PINGED_JOBS),
          });
    this.#stopReportingExits = reportExits({
      has: (run) => this.#pool.has(run),
      doneUrl: (jobId) => urls.done(jobId, false),
      apiKey,
      body: (error) => failureResult(error, { identity, refreshWorker: true }).body,
      onReport: (jobId, message) => this.#log.error(`The job failed: ${message}.`, jobId),
    });
    this.#stopAsked = new Promise((resolve) => (this.#askToStop = resolve));
    this.#log.info(`Worker ${identity.workerId} starts, berth-worker ${VERSION}.`);
    this.done = this.#work();
  }

  /** A job asked for a new worker, so this one ends by itself. */
  get exitsProcess(): boolean {
    return this.#refreshed;
  }

  /** Takes no more jobs. Resolves when the last result is acknowledged. */
  async stop(): Promise<void> {
    this.#stop();
    await this.done;
  }

  /** Aborts running jobs, without results. */
  abort(): void {
    this.#stop();
    this.#pool.abortAll();
  }

  #stop(): void {
    if (this.#stopping) return;
    this.#stopping = true;
    this.#log.info('The worker stops. It takes no more jobs and finishes those that it has.');
    this.#pool.stopAccepting();
    this.#askToStop();
  }

  async #work(): Promise<void> {
    try {
      await Promise.race([this.#prepare(), this.#stopAsked]);
    } catch (error) {
      if (error instanceof UnhealthyError) await this.#reportUnhealthy(error);
      await this.#pings?.stop();
      this.#stopReportingExits();
      throw error;
    }
    if (!this.#stopping) this.#open();
    await this.#stopAsked;
    await this.#drain();
  }

  async #prepare(): Promise<void> {
    const { fitness = [], concurrency } = this.#options;
    await runFitnessChecks(fitness);
    if (typeof concurrency === 'function') await updateConcurrency(concurrency, this.#pool, this.#log);
  }

  #open(): void {
    this.#opened = true;
    this.#pings?.start();
    const { concurrency } = this.#options;
    if (typeof concurrency === 'function')
      void pollConcurrency(
        concurrency,
        this.#pool,
        this.#timings.concurrencyInterval,
        this.#log,
        this.#closing.signal,
      );
    this.#source.start(this.#pool);
  }

  /** The jobs that this worker holds, including those whose results are not acknowledged. */
  #held(): string[] {
    return [...new Set([...this.#pool.jobIds(), ...(this.#source.unacknowledgedJobIds?.() ?? [])])];
  }

  async #drain(): Promise<void> {
    if (this.#opened) {
      await this.#source.stopTaking();
      do {
        await this.#pool.whenIdle();
        await this.#source.close();
      } while (!this.#pool.idle);
    }
    this.#closing.abort();
    await this.#pings?.stop();
    this.#stopReportingExits();
    this.#log.info('The worker has stopped.');
  }

  async #reportUnhealthy({ message, check, reason }: UnhealthyError): Promise<void> {
    this.#log.error(`This worker is unhealthy: ${message}`);
    await Promise.race([
      this.#source.reportUnhealthy(check, reason),
      delay(this.#timings.unhealthyReportTimeout, this.#closing.signal),
    ]);
    this.#closing.abort();
  }
}
