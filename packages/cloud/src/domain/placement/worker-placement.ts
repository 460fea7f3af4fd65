import type { Endpoint } from '../records.ts';
import { findCpuFlavor } from '../catalog/cpu-flavors.ts';
import { matchesCuda } from '../catalog/cuda-requirements.ts';
import { eligibleGpuTypes } from '../catalog/gpu-selection.ts';
import type { Capacity, EngineCapabilities, GpuCapacity } from './engine-capacity.ts';

/** One data center as a place for a worker. */
export interface WorkerCandidate {
  dataCenterId: string;
  /** What its engine calls an image. */
  images: EngineCapabilities['images'];
  capacity: Capacity;
  /** Why its engine cannot run the image; undefined where it can. */
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

/** What a worker with GPUs gets of the machine for each of them. */
const CPU_PER_GPU = 4;
const MEMORY_PER_GPU_GB = 16;

/** Kept word for word: clients recognise a full house by it. */
const NO_CAPACITY_MESSAGE =
  'There are no longer any instances available with the requested specifications. Please refresh and try again.';

export type WorkerPlacementResult = { place: WorkerPlacement } | { refused: string };

/** Where a worker of this endpoint shall run: the most wanted hardware first, among the data centers that may have it. */
export function placeWorker(endpoint: Endpoint, sites: readonly WorkerCandidate[]): WorkerPlacementResult {
  const allowed = sites.filter(({ dataCenterId, volumeId }) => isAllowed(endpoint, dataCenterId, volumeId));
  if (allowed.length === 0)
    return {
      refused: `none of the data centers ${endpoint.dataCenterIds.join(', ') || '(any)'} is connected${endpoint.networkVolumeIds.length > 0 ? " with the endpoint's network volume" : ''}`,
    };
  const able = allowed.filter(({ imageProblem }) => imageProblem === undefined);
  if (able.length === 0)
    return { refused: imageProblemOf(endpoint, allowed) ?? 'no engine can run the image' };
  const found =
    endpoint.compute === 'CPU' ? findCpuPlacement(endpoint, able) : findGpuPlacement(endpoint, able);
  return found === undefined ? { refused: NO_CAPACITY_MESSAGE } : { place: found };
}

/** Why none of these can run the image, as it is told by an engine that runs images of this kind, if there is one. */
export function imageProblemOf(
  { image }: Pick<Endpoint, 'image'>,
  sites: readonly Pick<WorkerCandidate, 'images' | 'imageProblem'>[],
): string | undefined {
  if (sites.some((site) => site.imageProblem === undefined)) return undefined;
  const wanted = image.startsWith('local/') ? 'folders' : 'containers';
  return (sites.find(({ images }) => images === wanted) ?? sites[0])?.imageProblem;
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

/** Cores are shared, and memory is what runs out: the engine itself knows when. */
function findCpuPlacement(
  { cpuFlavors }: Endpoint,
  sites: readonly WorkerCandidate[],
): WorkerPlacement | undefined {
  const [site] = sites;
  const [choice] = cpuFlavors;
  if (site === undefined) return undefined;
  const cpu = choice?.vcpuCount ?? 2;
  const memoryInGb = cpu * (findCpuFlavor(choice?.id ?? '')?.ramGbPerVcpu ?? 2);
  return {
    dataCenterId: site.dataCenterId,
    gpuTypeId: null,
    gpuCount: 0,
    cpu,
    memoryInGb,
    volumeId: site.volumeId,
  };
}

function findGpuPlacement(
  endpoint: Endpoint,
  sites: readonly WorkerCandidate[],
): WorkerPlacement | undefined {
  const { gpuCount } = endpoint;
  const eligible = eligibleGpuTypes(endpoint);
  const types =
    eligible.length > 0
      ? eligible
      : [...new Set(sites.flatMap(({ capacity }) => capacity.gpus.map(({ gpuTypeId }) => gpuTypeId)))];
  for (const gpuTypeId of types) {
    for (const { dataCenterId, capacity, volumeId } of sites) {
      if (capacity.gpus.some((gpu) => gpuFits(gpu, endpoint, gpuTypeId)))
        return {
          dataCenterId,
          gpuTypeId,
          gpuCount,
          cpu: CPU_PER_GPU * gpuCount,
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

/** What this round has already given away is no longer free for the rest of it. It is all of one machine. */
export function reserveCapacity(
  sites: WorkerCandidate[],
  endpoint: Endpoint,
  { dataCenterId, gpuTypeId, gpuCount }: WorkerPlacement,
): void {
  const site = sites.find((candidate) => candidate.dataCenterId === dataCenterId);
  if (site === undefined || gpuTypeId === null) return;
  const taken = site.capacity.gpus.findIndex((gpu) => gpuFits(gpu, endpoint, gpuTypeId));
  site.capacity = {
    ...site.capacity,
    gpus: site.capacity.gpus.map((gpu, index) =>
      index === taken ? { ...gpu, free: gpu.free - gpuCount } : gpu,
    ),
  };
}
