import type { Job } from '../domain/job-records.ts';
import type { LeaseHolder } from '../domain/job-transitions.ts';

/**
 * A worker's report concerns the attempt that it held when the report arrived. If the store fails and the
 * write is retried, the worker may by then hold the job again for another attempt.
 */
export function pinToAttempt(holder: LeaseHolder, tried: Job | undefined): LeaseHolder {
  return tried === undefined ? holder : { ...holder, lease: holder.lease ?? tried.lease ?? undefined };
}
