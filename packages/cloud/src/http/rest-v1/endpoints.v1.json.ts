import { cpuInstanceId } from '../../domain/catalog/cpu-selection.ts';
import { eligibleGpuTypes, formatGpuIds } from '../../domain/catalog/gpu-selection.ts';
import { locationsOf } from '../../domain/endpoints/endpoint-locations.ts';
import { wholeScalerValue } from '../../domain/endpoints/scaler-value.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { WorkerView } from '../../resources/endpoints/endpoint-workers.ts';
import { isoTime } from '../../support/clock.ts';
import type { Static } from '../rest/json-schema.ts';
import type { endpoint, worker } from './endpoints.v1.schema.ts';
import { withoutUnset } from './unset-fields.ts';

export function serializeEndpoint(found: Endpoint): Static<typeof endpoint> {
  return {
    id: found.id,
    name: found.name,
    userId: found.accountId,
    computeType: found.compute,
    gpuTypeIds: eligibleGpuTypes(found),
    gpuCount: found.gpuCount,
    gpuIds: formatGpuIds(found),
    instanceIds: found.cpuFlavors.map(cpuInstanceId),
    allowedCudaVersions: found.allowedCudaVersions,
    dataCenterIds: found.dataCenterIds,
    locations: locationsOf(found),
    networkVolumeIds: found.networkVolumeIds,
    env: found.env,
    executionTimeoutMs: found.executionTimeout,
    idleTimeout: found.idleTimeout,
    scalerType: found.scalerType,
    scalerValue: wholeScalerValue(found),
    workersMin: found.workersMin,
    workersMax: found.workersMax,
    flashboot: found.flashboot !== 'OFF',
    flashBootType: found.flashboot,
    modelReferences: found.modelReferences,
    version: found.version,
    createdAt: isoTime(found.createdAt),
    ...withoutUnset({
      templateId: found.templateId,
      minCudaVersion: found.minCudaVersion,
      networkVolumeId: found.networkVolumeIds[0] ?? null,
    }),
  };
}

export function serializeWorker(
  { worker: found, status }: WorkerView,
  { name }: Endpoint,
  isVirtual: boolean,
): Static<typeof worker> {
  return {
    id: found.id,
    name,
    endpointId: found.endpointId,
    aiApiId: found.endpointId,
    slsVersion: found.version,
    consumerUserId: found.accountId,
    desiredStatus: 'RUNNING',
    lastStatusChange: status,
    lastStartedAt: isoTime(found.createdAt),
    image: found.image,
    machine: { dataCenterId: found.dataCenterId },
    ...(found.gpuTypeId !== null && {
      gpu: { id: found.gpuTypeId, count: found.gpuCount, ...(isVirtual && { virtual: true }) },
    }),
    interruptible: false,
    locked: false,
  };
}
