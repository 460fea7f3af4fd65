import type { Row } from '../sql.ts';
import type { WorkerHeartbeat } from '../../domain/job-records.ts';

export function heartbeatFromRow(row: Row): WorkerHeartbeat {
  return {
    endpointId: row['endpoint_id'] as string,
    workerId: row['worker_id'] as string,
    seenAt: row['seen_at'] as number,
    busy: row['busy'] as number,
    unhealthy: row['unhealthy'] as string | null,
    accelerated: row['accelerated'] === 1,
  };
}
