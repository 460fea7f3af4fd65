import type { JobStore } from '../job-store.ts';
import { IS_TERMINAL } from '../tables/jobs.table.ts';
import { deleteJobs } from './delete-job.ts';
import type { QueueContext } from './queue-context.ts';

const EXPIRED =
  'from jobs where next_check_at <= :now and due_at <= :now and ' +
  `${IS_TERMINAL} order by next_check_at, seq limit :limit`;

/**
 * Deletes ended jobs whose retention is over. No interface shows them any more, so nothing waits for the
 * disk.
 */
export function expireJobs(queue: QueueContext): Pick<JobStore, 'deleteExpired'> {
  const { statements, group } = queue;
  const selectFirst = statements.rows(`select 1 ${EXPIRED}`);
  const deleteExpired = deleteJobs(queue, EXPIRED);

  return {
    deleteExpired: (now, limit) =>
      group.runUnsynced(() =>
        // Most of the time there are none, and then nothing is written.
        selectFirst.get({ now, limit: 1 }) === undefined ? 0 : deleteExpired({ now, limit }),
      ),
  };
}
