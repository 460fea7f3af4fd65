import type { Job, JobChange } from '../../domain/job-records.ts';
import type { QueueContext } from './queue-context.ts';

/** The job runs on: nothing changes but when its lease has to be checked again. */
export function isRenewal(before: Job, { job, output, error }: JobChange): boolean {
  return (
    before.status === 'IN_PROGRESS' &&
    job.status === 'IN_PROGRESS' &&
    output === undefined &&
    error === undefined &&
    job.ttlAt === before.ttlAt &&
    job.drained === before.drained
  );
}

export function renewLease({ statements }: QueueContext): (change: JobChange) => void {
  const renew = statements.write('update jobs set due_at = :due_at where seq = :seq');
  return ({ job }) => void renew({ seq: job.seq, due_at: job.dueAt });
}
