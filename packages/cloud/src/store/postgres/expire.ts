import type { JobStore } from '../job-store.ts';
import { IS_TERMINAL } from '../tables/jobs.table.ts';
import { deleteJobsSql } from './delete-jobs-sql.ts';
import type { QueueContext } from './queue-context.ts';

/** Deletes ended jobs whose retention is over. What another server just deletes is left to it. */
export function expireJobs({ statements }: QueueContext): Pick<JobStore, 'deleteExpired'> {
  const deleteExpired = statements.rows<{ deleted: number }>(
    deleteJobsSql(
      `select endpoint_id, seq from jobs where next_check_at <= :now and due_at <= :now and ${IS_TERMINAL}
        order by next_check_at limit :limit for update skip locked`,
    ),
  );
  return {
    deleteExpired: async (now, limit) => Number((await deleteExpired({ now, limit }))[0]?.deleted),
  };
}
