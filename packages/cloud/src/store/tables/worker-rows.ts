import type { Row } from '../sql.ts';
import type { Worker, WorkerState } from '../../domain/endpoints/worker-record.ts';

export function workerFromRow(found: Row): Worker {
  return {
    id: found['id'] as string,
    endpointId: found['endpoint_id'] as string,
    accountId: found['account_id'] as string,
    version: found['version'] as number,
    dataCenterId: found['data_center_id'] as string,
    image: found['image'] as string,
    gpuTypeId: found['gpu_type_id'] as string | null,
    gpuCount: found['gpu_count'] as number,
    cpuFlavorId: found['cpu_flavor_id'] as string | null,
    vcpuCount: found['vcpu_count'] as number,
    containerDisk: found['container_disk'] as number,
    templateId: found['template_id'] as string | null,
    state: found['state'] as WorkerState,
    handle: found['handle'] as string | null,
    createdAt: found['created_at'] as number,
    imageReadyAt: found['image_ready_at'] as number | null,
    startedAt: found['started_at'] as number | null,
    readyAt: found['ready_at'] as number | null,
    firstJobAt: found['first_job_at'] as number | null,
    endedAt: found['ended_at'] as number | null,
    exitCode: found['exit_code'] as number | null,
    reason: found['reason'] as string | null,
  };
}
