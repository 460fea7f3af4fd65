import type { Job } from '../store/job-records.ts';
import type { Holder } from './transitions.ts';

/** A worker speaks of the attempt that it held when it was first heard. By a later try, after one that failed, the job may be in its hands again, for another. */
export function sameAttempt(holder: Holder, tried: Job | undefined): Holder {
  return tried === undefined ? holder : { ...holder, lease: holder.lease ?? tried.lease ?? undefined };
}
