import type { Endpoint } from '../records.ts';
import { findCpuFlavor } from '../catalog/cpu-flavors.ts';
import { DEFAULT_VCPU_COUNT } from '../catalog/cpu-selection.ts';
import { matchesCuda } from '../catalog/cuda-requirements.ts';
import { eligibleGpuTypes } from '../catalog/gpu-selection.ts';
import type { Capacity, EngineCapabilities, GpuCapacity } from './engine-capacity.ts';
import { describeGpus } from './gpu-inventory.ts';
import { MEMORY_PER_GPU_GB, NO_CAPACITY_MESSAGE, VCPU_PER_GPU } from './hardware-shares.ts';

/** A data center that may run a worker. */
export interface WorkerCandidate {
  dataCenterId: string;
  /** Which images its engine runs. */
  images: EngineCapabilities['images'];
  capacity: Capacity;
  /** Why its engine cannot run the image; undefined if it can. */
  imageProblem: string | undefined;
  /** The endpoint's volume in this data center. */
  volumeId: string | undefined;
}

export interface WorkerPlacement {
  dataCenterId: string;
  gpuTypeId: string | null;
  gpuCount: number;
  cpu: number;
  memoryInGb: number;
  volumeId: string | undefined;
}

export type WorkerPlacementResult = { place: WorkerPlacement } | { refused: string };

/** Finds hardware for a worker of this endpoint, in its order of preference. */
export function placeWorker(
  endpoint: Endpoint,
  candidates: readonly WorkerCandidate[],
): WorkerPlacementResult {
  const allowed = candidates.filter(({ dataCenterId, volumeId }) =>
    isAllowed(endpoint, dataCenterId, volumeId),
  );
  if (allowed.length === 0)
    return {
      refused:
        `none of the data centers ${endpoint.dataCenterIds.join(', ') || '(any)'} is ` +
        `connected${endpoint.networkVolumeIds.length > 0 ? " with the endpoint's network volume" : ''}`,
    };
  const able = allowed.filter(({ imageProblem }) => imageProblem === undefined);
  if (able.length === 0)
    return { refused: imageProblemOf(endpoint, allowed) ?? 'no engine can run the image' };
  const found =
    endpoint.compute === 'CPU' ? findCpuPlacement(endpoint, able) : findGpuPlacement(endpoint, able);
  if (found !== undefined) return { place: found };
  return { refused: endpoint.compute === 'CPU' ? NO_CAPACITY_MESSAGE : gpuShortage(endpoint, able) };
}

/** Why none of these can run the image. The reason of an engine that runs this kind of image comes first. */
export function imageProblemOf(
  { image }: Pick<Endpoint, 'image'>,
  candidates: readonly Pick<WorkerCandidate, 'images' | 'imageProblem'>[],
): string | undefined {
  if (candidates.some((candidate) => candidate.imageProblem === undefined)) return undefined;
  const wanted = image.startsWith('local/') ? 'folders' : 'containers';
  return (candidates.find(({ images }) => images === wanted) ?? candidates[0])?.imageProblem;
}

function isAllowed(
  { dataCenterIds, networkVolumeIds }: Endpoint,
  dataCenterId: string,
  volumeId: string | undefined,
): boolean {
  return (
    (dataCenterIds.length === 0 || dataCenterIds.includes(dataCenterId)) &&
    (networkVolumeIds.length === 0 || volumeId !== undefined)
  );
}

/** Cores are shared. The engine refuses a start when it has no memory left. */
function findCpuPlacement(
  { cpuFlavors }: Endpoint,
  candidates: readonly WorkerCandidate[],
): WorkerPlacement | undefined {
  const [candidate] = candidates;
  const [choice] = cpuFlavors;
  if (candidate === undefined) return undefined;
  const cpu = choice?.vcpuCount ?? DEFAULT_VCPU_COUNT;
  const memoryInGb = cpu * (findCpuFlavor(choice?.id ?? '')?.ramGbPerVcpu ?? 2);
  return {
    dataCenterId: candidate.dataCenterId,
    gpuTypeId: null,
    gpuCount: 0,
    cpu,
    memoryInGb,
    volumeId: candidate.volumeId,
  };
}

function findGpuPlacement(
  endpoint: Endpoint,
  candidates: readonly WorkerCandidate[],
): WorkerPlacement | undefined {
  const { gpuCount } = endpoint;
  const eligible = eligibleGpuTypes(endpoint);
  const types =
    eligible.length > 0
      ? eligible
      : [...new Set(candidates.flatMap(({ capacity }) => capacity.gpus.map(({ gpuTypeId }) => gpuTypeId)))];
  for (const gpuTypeId of types) {
    for (const { dataCenterId, capacity, volumeId } of candidates) {
      if (capacity.gpus.some((gpu) => gpuFits(gpu, endpoint, gpuTypeId)))
        return {
          dataCenterId,
          gpuTypeId,
          gpuCount,
          cpu: VCPU_PER_GPU * gpuCount,
          memoryInGb: MEMORY_PER_GPU_GB * gpuCount,
          volumeId,
        };
    }
  }
  return undefined;
}

function gpuFits(
  gpu: GpuCapacity,
  { gpuCount, allowedCudaVersions, minCudaVersion }: Endpoint,
  gpuTypeId: string,
): boolean {
  return (
    gpu.gpuTypeId === gpuTypeId &&
    gpu.free >= gpuCount &&
    matchesCuda(gpu, { allowed: allowedCudaVersions, minimum: minCudaVersion })
  );
}

/** What is there, then what is asked for: lists cut long reasons, and what was asked for is known. */
function gpuShortage(endpoint: Endpoint, candidates: readonly WorkerCandidate[]): string {
  const types = eligibleGpuTypes(endpoint);
  const there = candidates.map(
    ({ dataCenterId, capacity }) => `${dataCenterId} has ${describeGpus(capacity.gpus)}`,
  );
  return `${there.join('. ')}. Asked for: ${endpoint.gpuCount} ${types.join(' or ') || 'GPU'}.`;
}

/**
 * Takes the GPUs of a placement from the capacity, for the workers that are placed next. They all come from
 * one machine.
 */
export function reserveCapacity(
  candidates: WorkerCandidate[],
  endpoint: Endpoint,
  { dataCenterId, gpuTypeId, gpuCount }: WorkerPlacement,
): void {
  const candidate = candidates.find((one) => one.dataCenterId === dataCenterId);
  if (candidate === undefined || gpuTypeId === null) return;
  const taken = candidate.capacity.gpus.findIndex((gpu) => gpuFits(gpu, endpoint, gpuTypeId));
  candidate.capacity = {
    ...candidate.capacity,
    gpus: candidate.capacity.gpus.map((gpu, index) =>
      index === taken ? { ...gpu, free: gpu.free - gpuCount } : gpu,
    ),
  };
}
