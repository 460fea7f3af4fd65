import { setImmediate as nextTurn } from 'node:timers/promises';
import { isPastRetention, type JobFilter } from '../domain/job-records.ts';
import type { JobWithPayloads } from '../domain/job-records.ts';
import type { JobPage, JobStore, JobListQuery } from '../store/job-store.ts';
import type { Clock } from '../support/clock.ts';

/**
 * A query returns within a few milliseconds, however many jobs there are. Between two queries other requests
 * are served: SQLite queries are synchronous.
 */
const PAGE_ROWS = 2_000;
/** Approximate limit for the payloads that are in memory at a time. */
const BATCH_BYTES = 1024 * 1024;

/**
 * The jobs of an endpoint, newest first, a page at a time: a thousand of them may not fit into memory. Jobs
 * that are skipped by status or offset are not loaded. A job that changes meanwhile is shown in its new
 * state, or left out where it no longer matches.
 */
export async function* listJobs(
  { store, clock }: { store: JobStore; clock: Clock },
  endpointId: string,
  { status, limit, offset }: JobFilter,
): AsyncGenerator<JobWithPayloads[]> {
  let [skip, left] = [offset, limit];
  let before: number | undefined;
  do {
    const query: JobListQuery = {
      now: clock.now(),
      maxRowsScanned: status === undefined ? Math.min(PAGE_ROWS, skip + left) : PAGE_ROWS,
    };
    const page = await store.list(endpointId, {
      ...query,
      ...(status !== undefined && { status }),
      ...(before !== undefined && { before }),
    });
    const wanted = page.jobs.slice(skip);
    skip = Math.max(0, skip - page.jobs.length);
    while (wanted.length > 0 && left > 0) {
      const piece = wanted.splice(0, Math.min(left, countWithinBytes(wanted, BATCH_BYTES)));
      const whole = await store.findAll(
        endpointId,
        piece.map(({ seq }) => seq),
      );
      const found = whole.filter(
        ({ job }) => (status === undefined || job.status === status) && !isPastRetention(job, clock.now()),
      );
      left -= found.length;
      yield found;
      await nextTurn();
    }
    before = page.next;
    await nextTurn();
  } while (left > 0 && before !== undefined);
}

/** How many of the first jobs fit into the limit; one always does. */
export function countWithinBytes(jobs: JobPage['jobs'], bytes: number): number {
  let size = 0;
  const over = jobs.findIndex((job) => (size += job.bytes) > bytes);
  return over === -1 ? jobs.length : Math.max(1, over);
}
