import type { Handler } from './handler.ts';
import type { Consumer, Delivery } from './job-source.ts';
import type { Log } from './log.ts';
import type { Result } from './result.ts';
import { Run } from './run.ts';
import { Runner } from './runner.ts';
import type { RunnerTerms } from './runner.ts';

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
  #concurrency: number;
  #closed = false;
  #filling = false;

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
    this.#concurrency = places;
    this.#fill();
    this.#parts.onRoom();
  }

  get idle(): boolean {
    return this.#running.size === 0 && this.#waiting.length === 0;
  }

  whenIdle(): Promise<void> {
    return this.idle ? Promise.resolve() : new Promise((resolve) => this.#onIdle.push(resolve));
  }

  room(): number {
    return this.#closed ? 0 : Math.max(0, this.#concurrency + this.#parts.prefetch - this.#running.size - this.#waiting.length);
  }

  held(): string[] {
    return [...new Set([...this.#running, ...this.#waiting].map(({ job }) => job.id))];
  }

  /** Asks for no more. What comes all the same is run. */
  closeDoor(): void {
    this.#closed = true;
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
      this.#windingUp.set(run, setTimeout(() => this.#ended(run), this.#parts.windUpMs));
    }
    return true;
  }

  /** Begins what waits, as far as there are places. A job that ends at once makes place for the next in the same loop. */
  #fill(): void {
    if (this.#filling) return;
    this.#filling = true;
    while (this.#running.size < this.#concurrency) {
      const run = this.#waiting.shift();
      if (run === undefined) break;
      this.#begin(run);
    }
    this.#filling = false;
  }

  #begin(run: Run): void {
    this.#running.add(run);
    if (this.#tellsOfJobs) this.#parts.log.info('Started.', run.job.id);
    const ending = this.#runner.run(run);
    if (ending === undefined) this.#ended(run);
    else void ending.then(() => this.#ended(run));
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
