import type { Job, JobChange } from '../domain/job-records.ts';

/** A result came in, and with it the end of a running job; nothing else of it changes. */
export function isFinish(before: Job, { job, output, error }: JobChange): boolean {
  return (
    before.status === 'IN_PROGRESS' && job.endedAt !== null && output !== undefined && error !== undefined
  );
}

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

/** A job that waits again, or has another time to live, may be due before the moment that `next_check_at` says. */
export function mustCheckEarlier(before: Job, after: Job): boolean {
  if (after.status !== 'IN_QUEUE' && after.status !== 'IN_PROGRESS') return false;
  return before.ttlAt !== after.ttlAt || (after.status === 'IN_QUEUE' && before.status !== 'IN_QUEUE');
}
