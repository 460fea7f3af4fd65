import type { Job } from '../job-records.ts';

/** A job that has a note instead of its rows: as it came, and as it is since a worker has it. */
export interface NotedJob {
  submitted: Job;
  held: Job;
  request: string;
}

/**
 * The jobs that have a note, as the table of notes has them: what a transaction adds and removes
 * here is undone with it.
 */
export class NotedJobs {
  readonly #jobs = new Map<number, NotedJob>();
  /** What stood here before this transaction changed it, in the order of the changes. */
  #before: [seq: number, job: NotedJob | undefined][] = [];

  get size(): number {
    return this.#jobs.size;
  }

  get(seq: number): NotedJob | undefined {
    return this.#jobs.get(seq);
  }

  all(): NotedJob[] {
    return [...this.#jobs.values()];
  }

  add(job: NotedJob): void {
    const { seq } = job.submitted;
    this.#before.push([seq, this.#jobs.get(seq)]);
    this.#jobs.set(seq, job);
  }

  remove(seq: number): void {
    this.#before.push([seq, this.#jobs.get(seq)]);
    this.#jobs.delete(seq);
  }

  committed(): void {
    if (this.#before.length > 0) this.#before = [];
  }

  undo(): void {
    for (const [seq, job] of this.#before.reverse()) {
      if (job === undefined) this.#jobs.delete(seq);
      else this.#jobs.set(seq, job);
    }
    this.#before = [];
  }
}
