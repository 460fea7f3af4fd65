import type { JobStore } from '../job-store.ts';
import { deleteInBatches } from './delete-in-batches.ts';
import { deleteJobs } from './delete-job.ts';
import type { QueueContext } from './queue-context.ts';

/** Up to the last job that was there when the purge began: whatever is submitted meanwhile stays. */
const WAITING = `from jobs indexed by jobs_waiting
  where endpoint_id = :endpoint_id and status = 'IN_QUEUE' and seq <= :last limit :limit`;

/** Deletes the waiting jobs of an endpoint, in batches, so that other work has its turn in between. */
export function purgeJobs(queue: QueueContext): Pick<JobStore, 'purge' | 'highestSeq'> {
  const { statements, group, counts } = queue;
  const selectHighest = statements.rows<{ seq: number }>('select coalesce(max(seq), 0) as seq from jobs');
  const deleteWaiting = deleteJobs(queue, WAITING);
  const highestSeq = (): number => selectHighest.get()?.seq ?? 0;

  return {
    purge: (endpoint_id) => {
      let last: number | undefined;
      return deleteInBatches((limit) =>
        group.run(() => {
          last ??= highestSeq();
          const deleted = deleteWaiting({ endpoint_id, last, limit });
          counts.add(endpoint_id, { queued: -deleted, running: 0, completed: 0, failed: 0, retried: 0 });
          return deleted;
        }),
      );
    },

    highestSeq: () => group.read(highestSeq),
  };
}
