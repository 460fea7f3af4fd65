import type { JobChange } from '../../domain/job-records.ts';
import type { QueueContext } from './queue-context.ts';

/** The worker is alive: its lease is checked again later. */
export function renewLease({ statements }: QueueContext): (change: JobChange) => void {
  const renew = statements.write('update jobs set due_at = :due_at where seq = :seq');
  return ({ job }) => void renew({ seq: job.seq, due_at: job.dueAt });
}
