import type { WorkerRecord } from './jobs.ts';
import type { Row } from './sql.ts';

export function workerFromRow(row: Row): WorkerRecord {
  return {
    endpointId: row['endpoint_id'] as string,
    workerId: row['worker_id'] as string,
    seenAt: row['seen_at'] as number,
    busy: row['busy'] as number,
    unhealthy: row['unhealthy'] as string | null,
  };
}
