import type { StatementSync } from 'node:sqlite';
import { ChurnMap } from '../../support/churn-map.ts';
import type { Job, Payloads, JobWithPayloads } from '../../domain/job-records.ts';
import type { Statements } from './statements.ts';

/** A note fits on a page of the database: a larger request is written once, in its row, and so is an end with a larger output. */
export const MAX_INLINE_CHARS = 2_000;

/** A job that has a note instead of its rows. */
export interface InlineJob {
  /** As it is since a worker has it for the first time. */
  held: Job;
  request: string;
  ended?: InlineResult;
}

export interface InlineResult extends Pick<Payloads, 'output' | 'error'> {
  job: Job;
}

/** As it came. */
export function asSubmitted({ held }: InlineJob): Job {
  return {
    ...held,
    status: 'IN_QUEUE',
    attempt: held.attempt - 1,
    lease: null,
    workerId: null,
    takenAt: null,
    dueAt: held.ttlAt,
  };
}

/**
 * Jobs that went from a client who waits for their end straight to a worker. One row holds all
 * of such a job, and its end too, until the ends are enough to be written out together. What is
 * known here is what the table has after the commit: what a transaction changes is undone with it.
 */
export class InlineJobs {
  readonly #insert: (isAll?: boolean) => StatementSync;
  readonly #update: (isAll?: boolean) => StatementSync;
  readonly #delete: (isAll?: boolean) => StatementSync;
  readonly #jobs = new ChurnMap<number, InlineJob>();
  /** What the table has of those that this transaction changes. */
  readonly #before = new ChurnMap<number, InlineJob | undefined>();
  #ended = 0;

  constructor(statements: Statements) {
    this.#insert = statements.write('insert into job_notes (seq, held, request, ended) values (?, ?, ?, ?)');
    this.#update = statements.write('update job_notes set ended = ? where seq = ?');
    this.#delete = statements.write('delete from job_notes where seq = ?');
    for (const row of statements.select('select held, request, ended from job_notes').all() as {
      held: string;
      request: string;
      ended: string | null;
    }[]) {
      const held = JSON.parse(row.held) as Job;
      this.#put(held.seq, {
        held,
        request: row.request,
        ...(row.ended !== null && { ended: readEnd(held, row.ended) }),
      });
    }
  }

  get size(): number {
    return this.#jobs.size;
  }

  /** How many of them have ended. */
  get ended(): number {
    return this.#ended;
  }

  get(seq: number): InlineJob | undefined {
    return this.#jobs.get(seq);
  }

  /** As its rows would show it. */
  find(endpointId: string, seq: number): JobWithPayloads | undefined {
    const noted = this.#jobs.get(seq);
    if (noted?.held.endpointId !== endpointId) return undefined;
    const { held, request, ended } = noted;
    return {
      job: ended?.job ?? held,
      payloads: { request, output: ended?.output ?? null, error: ended?.error ?? null },
    };
  }

  all(): InlineJob[] {
    return [...this.#jobs.values()];
  }

  set(job: InlineJob): void {
    this.#change(job.held.seq, job);
  }

  remove(seq: number): void {
    this.#change(seq, undefined);
  }

  /** Writes what has changed; `isAll` where nothing else is written with it. */
  write(isAll: boolean): void {
    const only = isAll && this.#before.size === 1;
    for (const [seq, before] of this.#before) {
      const job = this.#jobs.get(seq);
      const ended = job?.ended === undefined ? null : endText(job.held, job.ended);
      if (job === undefined) this.#delete(only).run(seq);
      else if (before === undefined)
        this.#insert(only).run(seq, JSON.stringify(job.held), job.request, ended);
      else this.#update(only).run(ended, seq);
    }
  }

  committed(): void {
    this.#before.clear();
  }

  undo(): void {
    for (const [seq, job] of this.#before) this.#put(seq, job);
    this.#before.clear();
  }

  #change(seq: number, job: InlineJob | undefined): void {
    if (!this.#before.has(seq)) this.#before.set(seq, this.#jobs.get(seq));
    this.#put(seq, job);
  }

  #put(seq: number, job: InlineJob | undefined): void {
    if (this.#jobs.get(seq)?.ended !== undefined) this.#ended -= 1;
    if (job?.ended !== undefined) this.#ended += 1;
    if (job === undefined) this.#jobs.delete(seq);
    else this.#jobs.set(seq, job);
  }
}

/** An end changes little of a job: only that is written. */
function endText(held: Job, { job, output, error }: InlineResult): string {
  const changed: Record<string, unknown> = {};
  for (const name of Object.keys(job) as (keyof Job)[])
    if (job[name] !== held[name]) changed[name] = job[name];
  return JSON.stringify([changed, output, error]);
}

function readEnd(held: Job, text: string): InlineResult {
  const [changed, output, error] = JSON.parse(text) as [Partial<Job>, string | null, string | null];
  return { job: { ...held, ...changed }, output, error };
}
