import { performance } from 'node:perf_hooks';
import type { Handler } from './handler.ts';
import type { JobConsumer, TakenJob } from './job-source.ts';
import type { WorkerLog } from './worker-log.ts';
import { MAX_TURN_MS } from './delay.ts';
import type { JobResult } from './job-result.ts';
import { JobRun } from './job-run.ts';
import { HandlerRunner } from './handler-runner.ts';
import type { HandlerRunnerOptions } from './handler-runner.ts';
import { TakeAheadEstimator } from './take-ahead.ts';

/** A prefetched job that has not started after this time is returned. */
const RETURN_IF_NOT_STARTED_MS = 250;

export interface JobPoolOptions {
  handler: Handler;
  resultOptions: HandlerRunnerOptions;
  concurrency: number;
  prefetch: number;
  /** How long a cancelled handler may take to end before its slot is reused. */
  abortGraceMs: number;
  log: WorkerLog;
  /** There is more room than before. */
  onCapacityGrew(): void;
  /**
   * There are fewer slots, or jobs did not start in time: jobs that were asked for and have not come are not
   * wanted any more.
   */
  onCapacityShrank(): void;
  /** The set of held jobs has changed. */
  onJobsChanged(): void;
  /** A result asked for a new worker. */
  onRefreshRequested(): void;
}

/** The jobs that this worker holds: running jobs, up to the concurrency, and jobs that wait for a slot. */
export class JobPool implements JobConsumer {
  readonly #options: JobPoolOptions;
  readonly #runner: HandlerRunner;
  readonly #running = new Set<JobRun>();
  readonly #waiting: JobRun[] = [];
  readonly #byJob = new Map<string, JobRun>();
  readonly #windingUp = new Map<JobRun, NodeJS.Timeout>();
  readonly #onIdle: (() => void)[] = [];
  readonly #ahead = new TakeAheadEstimator();
  #returnTimer: NodeJS.Timeout | undefined;
  #concurrency: number;
  #closed = false;
  #filling = false;
  /** When the first job of this event loop turn started. */
  #turnSince: number | undefined;

  constructor(parts: JobPoolOptions) {
    this.#options = parts;
    this.#concurrency = parts.concurrency;
    this.#runner = new HandlerRunner(parts.handler, parts.resultOptions, (run, result) =>
      this.#beforeResult(run, result),
    );
  }

  get concurrency(): number {
    return this.#concurrency;
  }

  /** Running jobs continue, even where there are now fewer slots. */
  set concurrency(slots: number) {
    const fewer = slots < this.#concurrency;
    this.#concurrency = slots;
    this.#fill();
    if (fewer) this.#options.onCapacityShrank();
    if (this.#waiting.length > this.#kept) this.#scheduleReturn();
    this.#options.onCapacityGrew();
  }

  has(run: JobRun): boolean {
    return this.#running.has(run);
  }

  get idle(): boolean {
    return this.#running.size === 0 && this.#waiting.length === 0;
  }

  whenIdle(): Promise<void> {
    return this.idle ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  capacity(ahead = false): number {
    if (this.#closed) return 0;
    const slots = this.#concurrency + this.#prefetch + (ahead ? this.#ahead.limit(this.#concurrency) : 0);
    return Math.max(0, slots - this.#running.size - this.#waiting.length);
  }

  /** Half of the prefetched jobs: running jobs never wait for a refill, and jobs come in large batches. */
  minBatch(): number {
    return Math.max(1, Math.floor(this.#ahead.limit(this.#concurrency) / 2));
  }

  jobIds(): string[] {
    return [...new Set([...this.#running, ...this.#waiting].map(({ job }) => job.id))];
  }

  /** Asks for no more jobs. Prefetched jobs are returned; jobs that still arrive are run or returned too. */
  stopAccepting(): void {
    this.#closed = true;
    this.#returnWaiting();
  }

  deliver(delivery: TakenJob): void {
    const { id } = delivery.job;
    // The server gave up the earlier run, or it would not deliver the job again.
    this.#stop(this.#byJob.get(id), 'the job was given to this worker anew');
    const run = new JobRun(delivery);
    this.#byJob.set(id, run);
    this.#waiting.push(run);
    this.#options.onJobsChanged();
    this.#fill();
    if (this.#waiting.length > this.#kept) this.#scheduleReturn();
  }

  abortJob(jobId: string): boolean {
    return this.#stop(this.#byJob.get(jobId), 'the job was cancelled or ran out of time');
  }

  /** Aborts all jobs. */
  abortAll(): void {
    for (const run of [...this.#waiting, ...this.#running]) this.#stop(run, 'the worker has to stop at once');
  }

  #stop(run: JobRun | undefined, reason: string): boolean {
    if (run === undefined || run.stopped) return false;
    run.abort(reason);
    const index = this.#waiting.indexOf(run);
    if (index >= 0) {
      this.#waiting.splice(index, 1);
      this.#forget(run);
      this.#afterEnd();
    } else if (this.#running.has(run)) {
      this.#windingUp.set(
        run,
        setTimeout(() => this.#ended(run), this.#options.abortGraceMs),
      );
    }
    return true;
  }

  /** Waiting jobs beyond the requested prefetch start in time or are returned. */
  #scheduleReturn(): void {
    if (this.#closed) return this.#returnWaiting();
    this.#returnTimer ??= setTimeout(() => {
      this.#returnTimer = undefined;
      this.#returnOverdue();
      if (this.#waiting.length > this.#kept) this.#scheduleReturn();
    }, RETURN_IF_NOT_STARTED_MS).unref();
  }

  #returnOverdue(): void {
    const first = this.#waiting.slice(this.#kept).find(({ cannotReturn }) => !cannotReturn);
    if (first === undefined || performance.now() - first.receivedAt < RETURN_IF_NOT_STARTED_MS) return;
    this.#ahead.reset();
    this.#options.onCapacityShrank();
    this.#returnWaiting();
  }

  /** How many waiting jobs may wait: the requested prefetch and those that have a free slot. */
  get #kept(): number {
    return this.#prefetch + Math.max(0, this.#concurrency - this.#running.size);
  }

  /** Without slots to run, no jobs may wait either. */
  get #prefetch(): number {
    return this.#concurrency === 0 ? 0 : this.#options.prefetch;
  }

  #returnWaiting(): void {
    const beyond = this.#waiting.splice(this.#kept);
    for (const run of beyond) {
      if (run.takenJob.returnToQueue?.() === true) this.#forget(run);
      else {
        run.cannotReturn = true;
        this.#waiting.push(run);
      }
    }
    if (beyond.length > 0) this.#afterEnd();
  }

  /**
   * Starts waiting jobs while there are free slots. A job that ends synchronously frees its slot in the same
   * loop.
   */
  #fill(): void {
    if (this.#filling) return;
    this.#filling = true;
    try {
      while (this.#running.size < this.#concurrency && this.#waiting.length > 0 && this.#hasTurn())
        this.#begin(this.#waiting.shift() as JobRun);
    } finally {
      this.#filling = false;
    }
  }

  /**
   * Jobs that end without ever awaiting would follow each other in one event loop turn, however many were
   * prefetched. After a while the pool yields to the rest of the worker, and jobs that waited too long are
   * returned.
   */
  #hasTurn(): boolean {
    if (this.#turnSince === undefined) {
      this.#turnSince = performance.now();
      setImmediate(() => {
        this.#turnSince = undefined;
        this.#returnOverdue();
        // Returned jobs are sent before the next job starts.
        process.nextTick(() => this.#fill());
      });
    }
    return performance.now() - this.#turnSince < MAX_TURN_MS;
  }

  #begin(run: JobRun): void {
    this.#running.add(run);
    run.startedAt = performance.now();
    run.takenJob.recordWait?.(run.startedAt - run.receivedAt);
    if (this.#reportsJobs) this.#options.log.info('Started.', run.job.id);
    const ending = this.#runner.run(run);
    if (ending === undefined) this.#through(run);
    else void ending.then(() => this.#through(run));
  }

  /** The handler has ended. A cancelled one has no result. */
  #through(run: JobRun): void {
    if (run.stopped && this.#reportsJobs) this.#options.log.info('Finished.', run.job.id);
    this.#ended(run);
  }

  /**
   * Log lines around a job show that the lines in between are its own. With several jobs at a time they would
   * show nothing and cost much.
   */
  get #reportsJobs(): boolean {
    return this.#concurrency === 1;
  }

  #beforeResult(run: JobRun, result: JobResult): void {
    if (result.failed) this.#options.log.error(`The job failed: ${result.body}`, run.job.id);
    if (this.#reportsJobs) this.#options.log.info('Finished.', run.job.id);
    if (result.requestsRefresh) this.#options.onRefreshRequested();
  }

  #ended(run: JobRun): void {
    if (!this.#running.delete(run)) return;
    this.#ahead.recordDuration(performance.now() - run.startedAt);
    clearTimeout(this.#windingUp.get(run));
    this.#windingUp.delete(run);
    this.#forget(run);
    this.#fill();
    this.#afterEnd();
  }

  #forget(run: JobRun): void {
    if (this.#byJob.get(run.job.id) === run) this.#byJob.delete(run.job.id);
  }

  #afterEnd(): void {
    this.#options.onJobsChanged();
    this.#options.onCapacityGrew();
    if (this.idle) for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
