import type { JobChange } from '../../domain/job-records.ts';
import { jobValues } from '../tables/jobs.table.ts';
import type { QueueContext } from './queue-context.ts';
import { assignments } from './statements.ts';

/** What the end of an attempt changes. `next_check_at` stays: see `nextCheckAt`. */
const FINISHED_COLUMNS = ['status', 'lease', 'taken_at', 'ended_at', 'due_at'] as const;

/**
 * Writes the end of a job and its result. The rule has checked, in the same transaction, that its worker
 * holds the lease.
 */
export function finishJob({ statements }: QueueContext): (change: JobChange) => void {
  const finish = statements.write(
    `update jobs set ${assignments(FINISHED_COLUMNS)}, output = :output, error = :error where seq = :seq`,
  );
  return ({ job, output, error }) => void finish({ ...jobValues(job), output, error });
}
