import type { JobStore } from '../job-store.ts';
import type { QueueContext } from './queue-context.ts';

/** How much waits in the queues of an account, or of all. */
export function queuedUsage({ statements }: QueueContext): Pick<JobStore, 'queuedJobs' | 'queuedBytes'> {
  const own = (table: string): string =>
    `(:account_id::text is null or ${table}.endpoint_id in (select id from endpoints where account_id = :account_id::text))`;
  const selectJobs = statements.rows<{ jobs: number }>(
    `select coalesce(sum(queued), 0)::bigint as jobs from job_counts where ${own('job_counts')}`,
  );
  const selectBytes = statements.rows<{ bytes: number }>(
    `select coalesce(sum(octet_length(request.request)), 0)::bigint as bytes
      from jobs as job join job_requests as request on request.endpoint_id = job.endpoint_id and request.seq = job.seq
      where job.status = 'IN_QUEUE' and ${own('job')}`,
  );
  return {
    queuedJobs: async (accountId) => Number((await selectJobs({ account_id: accountId ?? null }))[0]?.jobs),
    queuedBytes: async (accountId) =>
      Number((await selectBytes({ account_id: accountId ?? null }))[0]?.bytes),
  };
}
