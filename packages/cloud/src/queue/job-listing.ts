import { setImmediate as nextTurn } from 'node:timers/promises';
import { isPastRetention, type JobFilter } from '../domain/job-records.ts';
import type { JobWithPayloads } from '../domain/job-records.ts';
import type { JobPage, JobStore, JobListQuery } from '../store/job-store.ts';
import type { Clock } from '../support/clock.ts';

/** A look at the store is over within a few milliseconds, however many jobs there are. Between two of them others have their turn: SQLite answers without letting go. */
const PAGE_ROWS = 2_000;
/** About this much of what jobs carry is in memory at a time. */
const BATCH_BYTES = 1024 * 1024;

/**
 * The jobs of an endpoint, newest first, a piece at a time: a thousand of them may carry more
 * than fits into memory. What is passed over, by its status or by the offset, is not loaded.
 * A job that changes meanwhile is shown as it has become, or not at all where it is no longer asked for.
 */
export async function* listJobs(
  { store, clock }: { store: JobStore; clock: Clock },
  endpointId: string,
  { status, limit, offset }: JobFilter,
): AsyncGenerator<JobWithPayloads[]> {
  let [skip, left] = [offset, limit];
  let before: number | undefined;
  do {
    const look: JobListQuery = {
      now: clock.now(),
      maxRowsScanned: status === undefined ? Math.min(PAGE_ROWS, skip + left) : PAGE_ROWS,
    };
    const page = await store.list(endpointId, {
      ...look,
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

/** How many of the first are together at most so large; one always fits. */
export function countWithinBytes(jobs: JobPage['jobs'], bytes: number): number {
  let size = 0;
  const over = jobs.findIndex((job) => (size += job.bytes) > bytes);
  return over === -1 ? jobs.length : Math.max(1, over);
}
