import type { ComputeType, CpuChoice, NetworkVolume } from '../records.ts';
import { BerthError, ruleError } from '../../support/errors.ts';
import { type CudaRequirement, matchesCuda } from '../catalog/cuda-requirements.ts';
import { memoryInGbOf } from '../catalog/cpu-selection.ts';
import type { GpusInUse, Pod } from '../pods/pod-record.ts';
import type { Capacity, GpuCapacity, InstanceNetworkMode } from './engine-capacity.ts';
import { describeGpus } from './gpu-inventory.ts';
import { MEMORY_PER_GPU_GB, NO_CAPACITY_MESSAGE, VCPU_PER_GPU } from './hardware-shares.ts';

/** A machine with less free memory takes no more CPU pods. */
const MIN_FREE_MEMORY_GB = 0.25;

/** The hardware that a pod needs. */
export interface HardwareRequest {
  compute: ComputeType;
  /** In order of preference, or in any order if `gpuOrder` is `availability`. Empty for any type. */
  gpuTypeIds: readonly string[];
  gpuOrder: 'custom' | 'availability';
  gpuCount: number;
  cpuFlavors: readonly CpuChoice[];
  minVcpuPerGpu: number;
  minMemoryPerGpu: number;
  cuda: CudaRequirement;
  /** Empty for any data center. */
  dataCenterIds: readonly string[];
  dataCenterOrder: 'custom' | 'availability';
}

/** A data center with its present capacity. Data centers of one engine share its machines. */
export interface PodCandidate {
  dataCenterId: string;
  engine: string;
  capacity: Capacity;
  /** Why its engine cannot run the image; undefined if it can. */
  imageProblem: string | undefined;
  /** How its instances can share a network; undefined if they cannot. */
  network?: InstanceNetworkMode;
  /** Subnets that are in use there already. */
  subnetsInUse?(): Promise<string[]>;
}

export type PodPlacement = Pick<
  Pod,
  'dataCenterId' | 'gpuTypeId' | 'gpuCount' | 'cpuFlavorId' | 'vcpuCount' | 'memoryInGb' | 'cudaVersion'
>;

/** Finds hardware for a new pod, in its order of preference. Throws the reason if there is none. */
export function placePod(
  request: HardwareRequest,
  volume: NetworkVolume | undefined,
  candidates: readonly PodCandidate[],
  gpusInUse: readonly GpusInUse[],
): PodPlacement {
  const allowed = allowedCandidates(request, volume, candidates);
  const able = allowed.filter(({ imageProblem }) => imageProblem === undefined);
  if (able.length === 0) throw ruleError(allowed[0]?.imageProblem ?? 'no engine can run the image');
  const place =
    request.compute === 'CPU'
      ? findCpuPlacement(request, able)
      : findGpuPlacement(request, able, candidates, gpusInUse);
  if (place === undefined) throw capacityError(shortageDetails(request, able, candidates, gpusInUse));
  return place;
}

/** Finds one data center with capacity for all pods of a cluster. Throws the reason if there is none. */
export function placeCluster(
  request: HardwareRequest,
  count: number,
  volume: NetworkVolume | undefined,
  candidates: readonly PodCandidate[],
  gpusInUse: readonly GpusInUse[],
): PodPlacement {
  if (candidates.length === 0)
    throw ruleError('none of the data centers here can give several pods one network');
  const allowed = allowedCandidates(request, volume, candidates);
  const able = allowed.filter(({ imageProblem }) => imageProblem === undefined);
  if (able.length === 0) throw ruleError(allowed[0]?.imageProblem ?? 'no engine can run the image');
  const roomy = able.filter((candidate) => podCapacity(candidate, request, candidates, gpusInUse) >= count);
  const place = roomy.length === 0 ? undefined : findGpuPlacement(request, roomy, candidates, gpusInUse);
  if (place !== undefined) return place;
  throw capacityError(
    able.map(
      (candidate) =>
        `${candidate.dataCenterId}: has room for ` +
        `${podCapacity(candidate, request, candidates, gpusInUse)} pods with ${request.gpuCount} ` +
        `${request.gpuTypeIds.join(', ') || 'GPU'} each, ${count} requested; a cluster is in one ` +
        'data center',
    ),
  );
}

/** How many such pods fit now: each into one machine, and all of them into what is not reserved. */
function podCapacity(
  candidate: PodCandidate,
  request: HardwareRequest,
  candidates: readonly PodCandidate[],
  gpusInUse: readonly GpusInUse[],
): number {
  const rooms = candidate.capacity.gpus
    .filter(({ gpuTypeId }) => request.gpuTypeIds.includes(gpuTypeId))
    .map((gpu) => {
      const free = freeGpus(candidate, gpu, candidates, gpusInUse);
      return {
        machine: fits(request, candidate, gpu, free) ? Math.floor(gpu.free / request.gpuCount) : 0,
        records: Math.floor(
          Math.max(0, unreservedGpus(candidate, gpu.gpuTypeId, candidates, gpusInUse)) / request.gpuCount,
        ),
      };
    });
  return Math.min(
    rooms.reduce((sum, { machine }) => sum + machine, 0),
    ...rooms.map(({ records }) => records),
  );
}

/** Finds the same hardware again for a stopped pod. */
export function placeExistingPod(
  pod: Pod,
  gpuCount: number,
  candidates: readonly PodCandidate[],
  gpusInUse: readonly GpusInUse[],
): PodPlacement {
  const { dataCenterId, gpuTypeId, cpuFlavorId, vcpuCount, memoryInGb, cudaVersion } = pod;
  const perGpu = pod.gpuCount === 0 || gpuCount === 0 ? 1 : gpuCount / pod.gpuCount;
  const request: HardwareRequest = {
    compute: gpuTypeId !== null && gpuCount > 0 ? 'GPU' : 'CPU',
    gpuTypeIds: gpuTypeId === null ? [] : [gpuTypeId],
    gpuOrder: 'custom',
    gpuCount,
    cpuFlavors: [{ id: cpuFlavorId ?? '', vcpuCount }],
    minVcpuPerGpu: 0,
    minMemoryPerGpu: 0,
    cuda: {},
    dataCenterIds: [dataCenterId],
    dataCenterOrder: 'custom',
  };
  const place = placePod(request, undefined, candidates, gpusInUse);
  // It keeps its share of the machine.
  return {
    ...place,
    gpuTypeId,
    gpuCount,
    cpuFlavorId,
    cudaVersion: place.cudaVersion ?? cudaVersion,
    vcpuCount: vcpuCount * perGpu,
    memoryInGb: memoryInGb * perGpu,
  };
}

function allowedCandidates(
  { dataCenterIds }: HardwareRequest,
  volume: NetworkVolume | undefined,
  candidates: readonly PodCandidate[],
): PodCandidate[] {
  if (volume !== undefined && dataCenterIds.length > 0 && !dataCenterIds.includes(volume.dataCenterId)) {
    throw ruleError(
      `network volume ${volume.id} is in ${volume.dataCenterId}, which is not among the data centers ` +
        `${dataCenterIds.join(', ')}; a pod runs where its volume is`,
    );
  }
  const wanted = volume === undefined ? dataCenterIds : [volume.dataCenterId];
  const allowed =
    wanted.length === 0
      ? [...candidates]
      : wanted.flatMap((id) => candidates.filter(({ dataCenterId }) => dataCenterId === id));
  if (allowed.length === 0)
    throw new BerthError(
      'capacity',
      `${NO_CAPACITY_MESSAGE} None of the data centers ${wanted.join(', ') || '(any)'} is connected now.`,
    );
  return allowed;
}

/**
 * Cores and memory are shared. A pod is refused if the machine is too small for it, or has no memory free.
 */
function findCpuPlacement(
  { cpuFlavors }: HardwareRequest,
  candidates: readonly PodCandidate[],
): PodPlacement | undefined {
  for (const choice of cpuFlavors) {
    for (const { dataCenterId, capacity } of candidates) {
      const memoryInGb = memoryInGbOf(choice);
      if (memoryInGb <= capacity.memoryInGb && (capacity.freeMemoryInGb ?? Infinity) >= MIN_FREE_MEMORY_GB) {
        return {
          dataCenterId,
          gpuTypeId: null,
          gpuCount: 0,
          cpuFlavorId: choice.id,
          vcpuCount: choice.vcpuCount,
          memoryInGb,
          cudaVersion: null,
        };
      }
    }
  }
  return undefined;
}

function findGpuPlacement(
  request: HardwareRequest,
  able: readonly PodCandidate[],
  candidates: readonly PodCandidate[],
  gpusInUse: readonly GpusInUse[],
): PodPlacement | undefined {
  const options = able
    .flatMap((candidate) =>
      candidate.capacity.gpus.map((gpu) => ({
        candidate,
        gpu,
        free: freeGpus(candidate, gpu, candidates, gpusInUse),
      })),
    )
    .filter(
      ({ candidate, gpu, free }) =>
        (request.gpuTypeIds.length === 0 || request.gpuTypeIds.includes(gpu.gpuTypeId)) &&
        fits(request, candidate, gpu, free),
    );
  const most = new Map<string, number>();
  for (const { gpu, free } of options) most.set(gpu.gpuTypeId, Math.max(free, most.get(gpu.gpuTypeId) ?? 0));
  const typeRank = (id: string): number =>
    request.gpuOrder === 'custom' && request.gpuTypeIds.length > 0
      ? request.gpuTypeIds.indexOf(id)
      : -(most.get(id) ?? 0);
  const dataCenterRank = (id: string, free: number): number =>
    request.dataCenterOrder === 'custom' && request.dataCenterIds.length > 0
      ? request.dataCenterIds.indexOf(id)
      : -free;
  // Ordered by type, then by its name so that types of equal rank are not mixed, then by data center.
  const [best] = options.sort(
    (one, other) =>
      typeRank(one.gpu.gpuTypeId) - typeRank(other.gpu.gpuTypeId) ||
      one.gpu.gpuTypeId.localeCompare(other.gpu.gpuTypeId) ||
      dataCenterRank(one.candidate.dataCenterId, one.free) -
        dataCenterRank(other.candidate.dataCenterId, other.free),
  );
  if (best === undefined) return undefined;
  const { gpuCount } = request;
  const { gpu, candidate } = best;
  return {
    dataCenterId: candidate.dataCenterId,
    gpuTypeId: gpu.gpuTypeId,
    gpuCount,
    cpuFlavorId: null,
    vcpuCount: Math.max(VCPU_PER_GPU, request.minVcpuPerGpu) * gpuCount,
    memoryInGb: memoryInGbFor(request, gpu, candidate.capacity),
    cudaVersion: gpu.cudaVersion,
  };
}

function fits(
  { gpuCount, cuda, minMemoryPerGpu }: HardwareRequest,
  { capacity }: PodCandidate,
  gpu: GpuCapacity,
  free: number,
): boolean {
  return (
    free >= gpuCount &&
    matchesCuda(gpu, cuda) &&
    (gpu.virtual || minMemoryPerGpu * gpuCount <= capacity.memoryInGb)
  );
}

/** What the engine has free, limited to what is not reserved: a recorded pod may not have started yet. */
function freeGpus(
  candidate: PodCandidate,
  gpu: GpuCapacity,
  candidates: readonly PodCandidate[],
  gpusInUse: readonly GpusInUse[],
): number {
  return Math.min(gpu.free, unreservedGpus(candidate, gpu.gpuTypeId, candidates, gpusInUse));
}

/** How many GPUs of a type are not reserved by records, on all machines of the engine together. */
function unreservedGpus(
  { engine }: PodCandidate,
  wanted: string,
  candidates: readonly PodCandidate[],
  gpusInUse: readonly GpusInUse[],
): number {
  const together = new Set(
    candidates.filter((candidate) => candidate.engine === engine).map(({ dataCenterId }) => dataCenterId),
  );
  const taken = gpusInUse
    .filter(({ dataCenterId, gpuTypeId }) => together.has(dataCenterId) && gpuTypeId === wanted)
    .reduce((sum, { count }) => sum + count, 0);
  const there =
    candidates
      .find((candidate) => candidate.engine === engine)
      ?.capacity.gpus.filter(({ gpuTypeId }) => gpuTypeId === wanted)
      .reduce((sum, { total }) => sum + total, 0) ?? 0;
  return there - taken;
}

/** On a small machine the default share is reduced; a requested minimum is not. */
function memoryInGbFor(
  { gpuCount, minMemoryPerGpu }: HardwareRequest,
  { virtual }: GpuCapacity,
  { memoryInGb }: Capacity,
): number {
  const usual = MEMORY_PER_GPU_GB * gpuCount;
  const asked = minMemoryPerGpu * gpuCount;
  return Math.max(asked, virtual ? usual : Math.min(usual, memoryInGb));
}

function shortageDetails(
  { compute, gpuTypeIds, gpuCount, cpuFlavors }: HardwareRequest,
  able: readonly PodCandidate[],
  candidates: readonly PodCandidate[],
  gpusInUse: readonly GpusInUse[],
): string[] {
  if (compute === 'CPU') {
    const least = Math.min(...cpuFlavors.map(memoryInGbOf));
    return able.map(
      ({ dataCenterId, capacity }) =>
        `${dataCenterId}: the machine has ${capacity.memoryInGb} GB of memory, ` +
        `${capacity.freeMemoryInGb ?? 'some'} GB free; ${least} GB requested`,
    );
  }
  return able.flatMap((candidate) => {
    const gpus = candidate.capacity.gpus.filter(
      ({ gpuTypeId }) => gpuTypeIds.length === 0 || gpuTypeIds.includes(gpuTypeId),
    );
    if (gpus.length === 0)
      return [
        `${candidate.dataCenterId}: has no ${gpuTypeIds.join(', ') || 'GPU'}; it has ` +
          `${describeGpus(candidate.capacity.gpus)}`,
      ];
    return gpus.map(
      (gpu) =>
        `${candidate.dataCenterId}: ${Math.max(0, freeGpus(candidate, gpu, candidates, gpusInUse))} of ` +
        `${gpu.total} ${gpu.gpuTypeId} are free, ${gpuCount} requested`,
    );
  });
}

function capacityError(details: string[]): BerthError {
  return new BerthError('capacity', NO_CAPACITY_MESSAGE, { details });
}
