import type { JobStore } from '../job-store.ts';
import { heartbeatFromRow } from '../tables/heartbeat-rows.ts';
import { toFlag } from '../tables/owned-table.ts';
import type { QueueContext } from './queue-context.ts';
import { columnsAndValues } from './statements.ts';

/** When workers were last seen. */
export function workerHeartbeats({
  statements,
  group,
}: QueueContext): Pick<JobStore, 'saveHeartbeats' | 'workers' | 'compact'> {
  const save = statements.write(
    'insert or replace into job_workers ' +
      `${columnsAndValues(['endpoint_id', 'worker_id', 'seen_at', 'busy', 'unhealthy', 'accelerated'])}`,
  );
  const select = statements.rows(
    'select * from job_workers where endpoint_id = :endpoint_id and seen_at >= :seen_since',
  );
  const deleteOld = statements.write('delete from job_workers where seen_at < :seen_since');

  return {
    saveHeartbeats: (workers) =>
      group.run(() => {
        for (const { endpointId, workerId, seenAt, busy, unhealthy, accelerated } of workers)
          save({
            endpoint_id: endpointId,
            worker_id: workerId,
            seen_at: seenAt,
            busy,
            unhealthy,
            accelerated: toFlag(accelerated),
          });
      }),

    workers: (endpoint_id, seen_since) =>
      group.readUnsynced(() => select.all({ endpoint_id, seen_since }).map(heartbeatFromRow)),

    compact: (seen_since) => group.run(() => void deleteOld({ seen_since })),
  };
}
