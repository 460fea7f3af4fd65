import type { Endpoint } from '../../domain/records.ts';
import type { WorkerPlacement } from '../../domain/placement/worker-placement.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

/** The record of a worker before its instance is started. */
export function newWorker(id: string, endpoint: Endpoint, placement: WorkerPlacement, now: number): Worker {
  return {
    id,
    accountId: endpoint.accountId,
    endpointId: endpoint.id,
    version: endpoint.version,
    dataCenterId: placement.dataCenterId,
    image: endpoint.image,
    gpuTypeId: placement.gpuTypeId,
    gpuCount: placement.gpuCount,
    cpuFlavorId: placement.gpuTypeId === null ? (endpoint.cpuFlavors[0]?.id ?? null) : null,
    vcpuCount: placement.cpu,
    containerDisk: endpoint.containerDisk,
    templateId: endpoint.templateId,
    state: 'starting',
    handle: null,
    createdAt: now,
    imageReadyAt: null,
    startedAt: null,
    readyAt: null,
    firstJobAt: null,
    endedAt: null,
    exitCode: null,
    reason: null,
  };
}
