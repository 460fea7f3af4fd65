import { performance } from 'node:perf_hooks';
import type { Handler } from './handler.ts';
import type { Consumer, Delivery } from './job-source.ts';
import type { Log } from './log.ts';
import { TURN_MS } from './pause.ts';
import type { Result } from './result.ts';
import { Run } from './run.ts';
import { Runner } from './runner.ts';
import type { RunnerTerms } from './runner.ts';
import { TakeAhead } from './take-ahead.ts';

/** A job that was taken ahead and has not begun after this time goes back. */
const BEGIN_WITHIN_MS = 250;

export interface BenchParts {
  handler: Handler;
  terms: RunnerTerms;
  concurrency: number;
  prefetch: number;
  /** For a stopped handler to end before its place is given away. */
  windUpMs: number;
  log: Log;
  /** There is more room than before. */
  onRoom(): void;
  /** There are fewer places, or jobs did not begin in time: what was asked for and has not come is not wanted any more. */
  onLessRoom(): void;
  /** Other jobs are in hand than before. */
  onChange(): void;
  /** A result asked for a new worker. */
  onRefresh(): void;
}

/** What this worker has in hand: jobs that run, as many as the concurrency allows, and jobs that wait for a place. */
export class Bench implements Consumer {
  readonly #parts: BenchParts;
  readonly #runner: Runner;
  readonly #running = new Set<Run>();
  readonly #waiting: Run[] = [];
  readonly #byJob = new Map<string, Run>();
  readonly #windingUp = new Map<Run, NodeJS.Timeout>();
  readonly #onIdle: (() => void)[] = [];
  readonly #ahead = new TakeAhead();
  #looking: NodeJS.Timeout | undefined;
  #concurrency: number;
  #closed = false;
  #filling = false;
  /** When jobs were first begun in this turn of the event loop. */
  #turnSince: number | undefined;

  constructor(parts: BenchParts) {
    this.#parts = parts;
    this.#concurrency = parts.concurrency;
    this.#runner = new Runner(parts.handler, parts.terms, (run, result) => this.#beforeResult(run, result));
  }

  get concurrency(): number {
    return this.#concurrency;
  }

  /** What runs goes on, also where there are now fewer places. */
  set concurrency(places: number) {
    const fewer = places < this.#concurrency;
    this.#concurrency = places;
    this.#fill();
    if (fewer) this.#parts.onLessRoom();
    if (this.#waiting.length > this.#kept) this.#lookAtWaiting();
    this.#parts.onRoom();
  }

  get idle(): boolean {
    return this.#running.size === 0 && this.#waiting.length === 0;
  }

  whenIdle(): Promise<void> {
    return this.idle ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  room(ahead = false): number {
    if (this.#closed) return 0;
    const places = this.#concurrency + this.#prefetch + (ahead ? this.#ahead.jobs(this.#concurrency) : 0);
    return Math.max(0, places - this.#running.size - this.#waiting.length);
  }

  /** Half of what is taken ahead: what runs never waits for it, and jobs come in large pieces. */
  step(): number {
    return Math.max(1, Math.floor(this.#ahead.jobs(this.#concurrency) / 2));
  }

  held(): string[] {
    return [...new Set([...this.#running, ...this.#waiting].map(({ job }) => job.id))];
  }

  /** Asks for no more. What was taken ahead goes back; what comes all the same is run, or goes back too. */
  closeDoor(): void {
    this.#closed = true;
    this.#giveBack();
  }

  deliver(delivery: Delivery): void {
    const { id } = delivery.job;
    // The server gave up the earlier run, or it would not hand the job out again.
    this.#stop(this.#byJob.get(id), 'the job was given to this worker anew');
    const run = new Run(delivery);
    this.#byJob.set(id, run);
    this.#waiting.push(run);
    this.#parts.onChange();
    this.#fill();
    if (this.#waiting.length > this.#kept) this.#lookAtWaiting();
  }

  stop(jobId: string): boolean {
    return this.#stop(this.#byJob.get(jobId), 'the job was cancelled or ran out of time');
  }

  /** Stops everything at once. */
  stopAll(): void {
    for (const run of [...this.#waiting, ...this.#running]) this.#stop(run, 'the worker has to stop at once');
  }

  #stop(run: Run | undefined, reason: string): boolean {
    if (run === undefined || run.stopped) return false;
    run.stop(reason);
    const place = this.#waiting.indexOf(run);
    if (place >= 0) {
      this.#waiting.splice(place, 1);
      this.#forget(run);
      this.#afterEnd();
    } else if (this.#running.has(run)) {
      this.#windingUp.set(
        run,
        setTimeout(() => this.#ended(run), this.#parts.windUpMs),
      );
    }
    return true;
  }

  /** Of the jobs that wait, those that are more than was asked to wait here begin in time or go back. */
  #lookAtWaiting(): void {
    if (this.#closed) return this.#giveBack();
    this.#looking ??= setTimeout(() => {
      this.#looking = undefined;
      this.#giveBackLate();
      if (this.#waiting.length > this.#kept) this.#lookAtWaiting();
    }, BEGIN_WITHIN_MS).unref();
  }

  #giveBackLate(): void {
    const first = this.#waiting.slice(this.#kept).find(({ stays }) => !stays);
    if (first === undefined || performance.now() - first.deliveredAt < BEGIN_WITHIN_MS) return;
    this.#ahead.forget();
    this.#parts.onLessRoom();
    this.#giveBack();
  }

  /** How many of those that wait may do so: as many as were asked to, and those that there is a place for. */
  get #kept(): number {
    return this.#prefetch + Math.max(0, this.#concurrency - this.#running.size);
  }

  /** With no place to run there is none to wait either. */
  get #prefetch(): number {
    return this.#concurrency === 0 ? 0 : this.#parts.prefetch;
  }

  #giveBack(): void {
    const beyond = this.#waiting.splice(this.#kept);
    for (const run of beyond) {
      if (run.delivery.giveBack?.() === true) this.#forget(run);
      else {
        run.stays = true;
        this.#waiting.push(run);
      }
    }
    if (beyond.length > 0) this.#afterEnd();
  }

  /** Begins what waits, as far as there are places. A job that ends at once makes place for the next in the same loop. */
  #fill(): void {
    if (this.#filling) return;
    this.#filling = true;
    try {
      while (this.#running.size < this.#concurrency && this.#waiting.length > 0 && this.#hasTurn())
        this.#begin(this.#waiting.shift() as Run);
    } finally {
      this.#filling = false;
    }
  }

  /**
   * Jobs that end without ever waiting would follow each other in one turn of the event loop, however
   * many were taken ahead. After a while the rest of the worker has its turn, and what waited too long goes back.
   */
  #hasTurn(): boolean {
    if (this.#turnSince === undefined) {
      this.#turnSince = performance.now();
      setImmediate(() => {
        this.#turnSince = undefined;
        this.#giveBackLate();
        // What goes back is on its way before the next job begins.
        process.nextTick(() => this.#fill());
      });
    }
    return performance.now() - this.#turnSince < TURN_MS;
  }

  #begin(run: Run): void {
    this.#running.add(run);
    run.begunAt = performance.now();
    run.delivery.waited?.(run.begunAt - run.deliveredAt);
    if (this.#tellsOfJobs) this.#parts.log.info('Started.', run.job.id);
    const ending = this.#runner.run(run);
    if (ending === undefined) this.#through(run);
    else void ending.then(() => this.#through(run));
  }

  /** The handler has ended. One that was stopped has no result to tell of. */
  #through(run: Run): void {
    if (run.stopped && this.#tellsOfJobs) this.#parts.log.info('Finished.', run.job.id);
    this.#ended(run);
  }

  /** Lines around a job say whose the lines between are. With several at a time they would say nothing, and cost much. */
  get #tellsOfJobs(): boolean {
    return this.#concurrency === 1;
  }

  #beforeResult(run: Run, result: Result): void {
    if (result.failed) this.#parts.log.error(`The job failed: ${result.body}`, run.job.id);
    if (this.#tellsOfJobs) this.#parts.log.info('Finished.', run.job.id);
    if (result.refresh) this.#parts.onRefresh();
  }

  #ended(run: Run): void {
    if (!this.#running.delete(run)) return;
    this.#ahead.ended(performance.now() - run.begunAt);
    clearTimeout(this.#windingUp.get(run));
    this.#windingUp.delete(run);
    this.#forget(run);
    this.#fill();
    this.#afterEnd();
  }

  #forget(run: Run): void {
    if (this.#byJob.get(run.job.id) === run) this.#byJob.delete(run.job.id);
  }

  #afterEnd(): void {
    this.#parts.onChange();
    this.#parts.onRoom();
    if (this.idle) for (const resolve of this.#onIdle.splice(0)) resolve();
  }
}
