import type { JobStore } from '../job-store.ts';
import type { QueueContext } from './queue-context.ts';

/** How much waits in the queues of an account, or of all. */
export function queuedUsage({
  statements,
  group,
}: QueueContext): Pick<JobStore, 'queuedJobs' | 'queuedBytes'> {
  const OWN =
    '(:account_id is null or endpoint_id in (select id from endpoints where account_id = :account_id))';
  const selectJobs = statements.rows<{ jobs: number }>(
    `select coalesce(sum(queued), 0) as jobs from job_counts where ${OWN}`,
  );
  const selectBytes = statements.rows<{ bytes: number }>(
    `select coalesce(sum(octet_length(request.request)), 0) as bytes
      from (select seq from jobs where status = 'IN_QUEUE' and ${OWN}) as job
      join job_requests as request on request.seq = job.seq`,
  );
  return {
    queuedJobs: (accountId) =>
      group.readUnsynced(() => Number(selectJobs.get({ account_id: accountId ?? null })?.jobs)),
    queuedBytes: (accountId) =>
      group.readUnsynced(() => Number(selectBytes.get({ account_id: accountId ?? null })?.bytes)),
  };
}
