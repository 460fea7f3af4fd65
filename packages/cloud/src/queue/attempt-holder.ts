import type { Job } from '../domain/job-records.ts';
import type { LeaseHolder } from '../domain/job-transitions.ts';

/** A worker speaks of the attempt that it held when it was first heard. By a later try, after one that failed, the job may be in its hands again, for another. */
export function pinToAttempt(holder: LeaseHolder, tried: Job | undefined): LeaseHolder {
  return tried === undefined ? holder : { ...holder, lease: holder.lease ?? tried.lease ?? undefined };
}
