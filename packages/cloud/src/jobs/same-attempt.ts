import type { Job } from '../store/job-records.ts';
import { holds } from './transitions.ts';
import type { Holder } from './transitions.ts';

/** A worker speaks of the attempt that it held when it was first heard. By a later try the job may be in its hands again, for another. */
export function sameAttempt(holder: Holder): (job: Job) => Holder {
  let { lease } = holder;
  return (job) => {
    if (holds(job, holder)) lease ??= job.lease ?? undefined;
    return { ...holder, lease };
  };
}
