import type { WorkerHeartbeat } from '../job-store.ts';
import type { Row } from '../sql.ts';

export function heartbeatFromRow(row: Row): WorkerHeartbeat {
  return {
    endpointId: row['endpoint_id'] as string,
    workerId: row['worker_id'] as string,
    seenAt: row['seen_at'] as number,
    busy: row['busy'] as number,
    unhealthy: row['unhealthy'] as string | null,
  };
}
