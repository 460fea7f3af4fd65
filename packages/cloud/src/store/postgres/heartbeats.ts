import { MAX_CLOCK_SKEW_MS } from '../../support/clock.ts';
import type { JobStore } from '../job-store.ts';
import { heartbeatFromRow } from '../tables/heartbeat-rows.ts';
import { columnArrays, unnest } from './column-arrays.ts';
import { mergeCountRows } from './job-counts.ts';
import type { QueueContext } from './queue-context.ts';
import { withTransactionRetries } from './transactions.ts';

const HEARTBEAT_COLUMNS = [
  'endpoint_id',
  'worker_id',
  'seen_at',
  'busy',
  'unhealthy',
  'accelerated',
] as const;

/** When workers were last seen. */
export function workerHeartbeats({
  statements,
  pool,
}: QueueContext): Pick<JobStore, 'saveHeartbeats' | 'workers' | 'compact'> {
  // Every server writes in the same order: two that save the same workers would else wait for each other.
  // Another server may have seen a worker later; but a time that is far ahead is from before a clock was set
  // back.
  const save = statements.rows(
    `insert into job_workers (${HEARTBEAT_COLUMNS.join(', ')}) select * from ${unnest(HEARTBEAT_COLUMNS)}
      order by endpoint_id, worker_id
      on conflict (endpoint_id, worker_id) do update
      set busy = excluded.busy, unhealthy = excluded.unhealthy, accelerated = excluded.accelerated,
        seen_at = case when job_workers.seen_at > excluded.seen_at + ${MAX_CLOCK_SKEW_MS} then excluded.seen_at
          else greatest(job_workers.seen_at, excluded.seen_at) end`,
  );
  const select = statements.rows(
    'select * from job_workers where endpoint_id = :endpoint_id and seen_at >= :seen_since',
  );
  const deleteOld = statements.rows('delete from job_workers where seen_at < :seen_since');

  return {
    saveHeartbeats: async (workers) => {
      const rows = workers.map(({ endpointId, workerId, seenAt, busy, unhealthy, accelerated }) => ({
        endpoint_id: endpointId,
        worker_id: workerId,
        seen_at: seenAt,
        busy,
        unhealthy,
        accelerated: accelerated ? 1 : 0,
      }));
      await withTransactionRetries(() => save(columnArrays(rows, HEARTBEAT_COLUMNS)));
    },

    workers: async (endpoint_id, seen_since) =>
      (await select({ endpoint_id, seen_since })).map(heartbeatFromRow),

    compact: async (seen_since) => {
      await deleteOld({ seen_since });
      await mergeCountRows(pool, statements);
    },
  };
}
