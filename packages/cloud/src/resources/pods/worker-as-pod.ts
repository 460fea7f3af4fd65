import type { Endpoint } from '../../domain/records.ts';
import type { PriceSettings } from '../../domain/catalog/prices.ts';
import { workerHourlyCost } from '../../domain/hourly-cost.ts';
import { POD_DEFAULTS } from '../../domain/pods/pod-input.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

/** A worker in the form of a pod. */
export interface WorkerPod {
  pod: Pod;
  endpointId: string;
  version: number;
}

export function workerAsPod(worker: Worker, endpoint: Endpoint, prices: PriceSettings): WorkerPod {
  const { id, accountId, createdAt, dataCenterId, image, gpuTypeId, gpuCount, state, startedAt, readyAt } =
    worker;
  const { args, containerDisk, ports, env, registryId, templateId, compute, cpuFlavors } = endpoint;
  const pod: Pod = {
    ...POD_DEFAULTS,
    id,
    accountId,
    createdAt,
    updatedAt: createdAt,
    statusChangedAt: readyAt ?? createdAt,
    name: endpoint.name,
    compute,
    image,
    args,
    containerDisk,
    ports,
    env,
    registryId,
    templateId,
    volumePath: '/runpod-volume',
    networkVolumeId: endpoint.networkVolumeIds[0] ?? null,
    dataCenterId,
    gpuTypeId,
    gpuCount,
    cpuFlavorId: cpuFlavors[0]?.id ?? null,
    vcpuCount: cpuFlavors[0]?.vcpuCount ?? 0,
    status: state === 'starting' ? 'STARTING' : 'RUNNING',
    settled: true,
    startedAt: startedAt ?? createdAt,
    costPerHour: workerHourlyCost(prices, worker),
  };
  return { pod, endpointId: endpoint.id, version: worker.version };
}
