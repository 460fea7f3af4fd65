import type { Job } from '../../domain/job-records.ts';
import type { QueueContext } from './queue-context.ts';

/** Deletes a job with all that belongs to it. Counts are left to the caller. */
export function deleteJob({ statements }: Pick<QueueContext, 'statements'>): (job: Job) => void {
  const deletes = [
    'delete from job_chunks where endpoint_id = :endpoint_id and seq = :seq',
    'delete from job_requests where seq = :seq',
    'delete from jobs where seq = :seq',
  ].map((text) => statements.write(text));
  return ({ seq, endpointId }) => {
    for (const remove of deletes) remove({ seq, endpoint_id: endpointId });
  };
}

/**
 * Deletes jobs by a query of their numbers, which has the columns `endpoint_id` and `seq`; answers how many.
 */
export function deleteJobs(
  { statements }: Pick<QueueContext, 'statements'>,
  selected: string,
): ReturnType<QueueContext['statements']['write']> {
  const deleteChunks = statements.write(
    `delete from job_chunks where (endpoint_id, seq) in (select endpoint_id, seq ${selected})`,
  );
  const deleteRequests = statements.write(`delete from job_requests where seq in (select seq ${selected})`);
  const deleteRows = statements.write(`delete from jobs where seq in (select seq ${selected})`);
  return (values) => {
    deleteChunks(values);
    deleteRequests(values);
    return deleteRows(values);
  };
}
