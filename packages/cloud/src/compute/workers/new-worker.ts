import type { Endpoint } from '../../domain/records.ts';
import type { WorkerPlacement } from '../../domain/placement/worker-placement.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

/** A worker as it is written down before there is anything of it. */
export function newWorker(id: string, endpoint: Endpoint, where: WorkerPlacement, now: number): Worker {
  return {
    id,
    accountId: endpoint.accountId,
    endpointId: endpoint.id,
    version: endpoint.version,
    dataCenterId: where.dataCenterId,
    image: endpoint.image,
    gpuTypeId: where.gpuTypeId,
    gpuCount: where.gpuCount,
    cpuFlavorId: where.gpuTypeId === null ? (endpoint.cpuFlavors[0]?.id ?? null) : null,
    vcpuCount: where.cpu,
    containerDisk: endpoint.containerDisk,
    templateId: endpoint.templateId,
    state: 'starting',
    handle: null,
    createdAt: now,
    startedAt: null,
    readyAt: null,
    endedAt: null,
    exitCode: null,
    reason: null,
  };
}
