import type { StatementSync } from 'node:sqlite';
import { SteadyMap } from '../../support/steady-map.ts';
import type { Job } from '../job-records.ts';
import type { Statements } from './statements.ts';

/** A note fits on a page of the database: a larger request is written once, in its row. */
export const LARGEST_NOTED = 2_000;

/** A job that has a note instead of its rows, as it is since a worker has it for the first time. */
export interface NotedJob {
  held: Job;
  request: string;
}

/** As it came. */
export function submitted({ held }: NotedJob): Job {
  return { ...held, status: 'IN_QUEUE', attempt: held.attempt - 1, lease: null, workerId: null, takenAt: null, dueAt: held.ttlAt };
}

/**
 * Jobs that went from a client who waits for their end straight to a worker. One row holds all
 * of such a job, which is enough if it ends at once. What is known here is what the table has:
 * what a transaction adds and removes is undone with it.
 */
export class NotedJobs {
  readonly #insert: () => StatementSync;
  readonly #delete: () => StatementSync;
  readonly #jobs = new SteadyMap<number, NotedJob>();
  /** What stood here before this transaction changed it, in the order of the changes. */
  #before: [seq: number, job: NotedJob | undefined][] = [];

  constructor(statements: Statements) {
    this.#insert = statements.writing('insert into job_notes (seq, note) values (?, ?)');
    this.#delete = statements.writing('delete from job_notes where seq = ?');
    for (const { seq, note } of statements.select('select seq, note from job_notes').all() as { seq: number; note: string }[]) this.#jobs.set(seq, JSON.parse(note) as NotedJob);
  }

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
    const { seq } = job.held;
    this.#before.push([seq, this.#jobs.get(seq)]);
    this.#jobs.set(seq, job);
    this.#insert().run(seq, JSON.stringify(job));
  }

  remove(seq: number): void {
    this.#before.push([seq, this.#jobs.get(seq)]);
    this.#jobs.delete(seq);
    this.#delete().run(seq);
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
