import type { Job, JobStatus } from './job-records.ts';
import { firstSeqAt } from './job-ids.ts';

/** Which jobs of an endpoint are meant. What is not set does not matter. */
export interface JobSearchFilter {
  statuses?: readonly JobStatus[];
  /** Created at or after this time. */
  from?: number;
  /** Created before this time. */
  to?: number;
  idPrefix?: string;
  /** Occurs in the JSON text of the request; ASCII letters of either case are equal. */
  text?: string;
  /** Of its error. */
  fingerprint?: string;
}

/** A job that was found, with the first part of its error. */
export interface FoundJob {
  job: Job;
  /** JSON text; cut after `ERROR_PREFIX_CHARS`. */
  error: string | null;
  /** The size of its payloads. */
  bytes: number;
}

/** The statuses of jobs that ended with an error. An index finds them. */
export const FAILED_STATUSES = ['FAILED', 'TIMED_OUT'] as const satisfies readonly JobStatus[];

/** What can be done with many jobs at once. */
export const JOB_ACTIONS = ['retry', 'cancel', 'redrive'] as const;
export type JobAction = (typeof JOB_ACTIONS)[number];

/** Which jobs an action is for, where its filter names no status. */
export const ACTION_STATUSES: Record<JobAction, readonly JobStatus[]> = {
  retry: FAILED_STATUSES,
  cancel: ['IN_QUEUE'],
  redrive: FAILED_STATUSES,
};

/** A number runs ahead of the time by as much as the clock was set back. */
const SEQ_SLACK_MS = 60_000;

/** The numbers that jobs of this time can have; `before` is excluded. */
export function seqRange({ from, to }: Pick<JobSearchFilter, 'from' | 'to'>): {
  from: number;
  before: number;
} {
  return {
    from: from === undefined ? 0 : firstSeqAt(from),
    before: to === undefined ? Number.MAX_SAFE_INTEGER : firstSeqAt(to + SEQ_SLACK_MS),
  };
}
