import type { JobStore } from '../job-store.ts';
import type { QueueContext } from './queue-context.ts';

/** Deletes everything of an endpoint. */
export function removeEndpoint({
  statements,
  group,
  counts,
}: QueueContext): Pick<JobStore, 'removeEndpoint'> {
  const deletes = [
    // Before the jobs by which they are found.
    'delete from job_requests where seq in (select seq from jobs where endpoint_id = :endpoint_id)',
    ...['jobs', 'job_chunks', 'job_counts', 'job_history', 'job_workers', 'webhook_deliveries'].map(
      (table) => `delete from ${table} where endpoint_id = :endpoint_id`,
    ),
  ].map((text) => statements.write(text));

  return {
    removeEndpoint: (endpoint_id) =>
      group.run(() => {
        counts.deleteEndpoint(endpoint_id);
        for (const remove of deletes) remove({ endpoint_id });
      }),
  };
}
