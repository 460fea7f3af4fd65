import type { Job, JobChange } from '../domain/job-records.ts';

/** A change that is to be written, and the job as it was before. */
export interface JobRowChange {
  before: Job;
  change: JobChange;
}

/** Which rows a change of a job touches. */
export interface AffectedRows {
  /** Its place among the waiting. */
  waiting: 'enters' | 'leaves' | undefined;
  /** Only a take begins one, and it writes that itself. */
  lease: 'ends' | 'renewed' | undefined;
  /** Its own row. */
  row: boolean;
  /** The row may have to be looked at earlier than it was to be. */
  recheck: boolean;
}

export function affectedRows(
  before: Job,
  { job: after, output, error }: Pick<JobChange, 'job' | 'output' | 'error'>,
): AffectedRows {
  const [waited, waits] = [before.status === 'IN_QUEUE', after.status === 'IN_QUEUE'];
  const [held, holds] = [before.status === 'IN_PROGRESS', after.status === 'IN_PROGRESS'];
  const says =
    output !== undefined ||
    error !== undefined ||
    before.drained !== after.drained ||
    before.ttlAt !== after.ttlAt;
  return {
    waiting: waited === waits ? undefined : waits ? 'enters' : 'leaves',
    lease: held ? (holds ? 'renewed' : 'ends') : undefined,
    row: says || !holds,
    recheck: (waits || holds) && (before.ttlAt !== after.ttlAt || (waits && !waited)),
  };
}

/** How many times one look for due jobs may find rows that only have to be looked at again later. */
export const MAX_DUE_SCANS = 10;
