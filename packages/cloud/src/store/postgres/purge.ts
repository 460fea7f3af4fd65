import type { JobStore } from '../job-store.ts';
import { deleteJobsSql } from './delete-jobs-sql.ts';
import { addCountsSql } from './job-counts.ts';
import type { QueueContext } from './queue-context.ts';
import { withTransactionRetries } from './transactions.ts';

/**
 * Deletes the waiting jobs of an endpoint. They are locked in the order in which changes lock them too, so
 * that neither waits for the other.
 */
export function purgeJobs({ statements, server }: QueueContext): Pick<JobStore, 'purge' | 'highestSeq'> {
  const deleteWaiting = statements.rows<{ deleted: number }>(
    deleteJobsSql(
      `select endpoint_id, seq from jobs where endpoint_id = :endpoint_id and status = 'IN_QUEUE' ` +
        'order by seq for update',
      addCountsSql('select :endpoint_id, :writer, -count(*), 0, 0, 0, 0 from gone having count(*) > 0'),
    ),
  );
  /** From endpoint to endpoint through the index: it does not know the highest number of all of them. */
  const selectHighest = statements.rows<{ seq: number }>(
    `with recursive served (endpoint_id) as (
        (select endpoint_id from jobs order by endpoint_id limit 1)
        union all select
          (select endpoint_id from jobs where endpoint_id > served.endpoint_id order by endpoint_id limit 1)
          from served where served.endpoint_id is not null)
      select coalesce(max((select max(seq) from jobs where jobs.endpoint_id = served.endpoint_id)), 0) as seq
        from served`,
  );

  return {
    purge: async (endpoint_id) => {
      const [row] = await withTransactionRetries(() =>
        deleteWaiting({ endpoint_id, writer: `${server} purge` }),
      );
      return Number(row?.deleted);
    },

    highestSeq: async () => Number((await selectHighest())[0]?.seq),
  };
}
