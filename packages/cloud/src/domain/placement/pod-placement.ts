import type { ComputeType, CpuChoice, NetworkVolume } from '../records.ts';
import { BerthError, ruleError } from '../../support/errors.ts';
import { type CudaRequirement, matchesCuda } from '../catalog/cuda-requirements.ts';
import { memoryInGbOf } from '../catalog/cpu-selection.ts';
import type { GpusInUse, Pod } from '../pods/pod-record.ts';
import type { Capacity, GpuCapacity, InstanceNetworkMode } from './engine-capacity.ts';

/** Kept word for word: clients recognise a full house by it. */
export const NO_CAPACITY_MESSAGE =
  'There are no longer any instances available with the requested specifications. Please refresh and try again.';

/** What a pod gets of the machine for each of its GPUs, where it does not ask for more. */
const VCPU_PER_GPU = 4;
const MEMORY_PER_GPU_GB = 16;
/** Less than this and a machine is full. */
const MIN_FREE_MEMORY_GB = 0.25;

/** What hardware a pod asks for. */
export interface HardwareRequest {
  compute: ComputeType;
  /** The most wanted first, or whichever is there in the greatest number; none is any. */
  gpuTypeIds: readonly string[];
  gpuOrder: 'custom' | 'availability';
  gpuCount: number;
  cpuFlavors: readonly CpuChoice[];
  minVcpuPerGpu: number;
  minMemoryPerGpu: number;
  cuda: CudaRequirement;
  /** Where; none is anywhere. */
  dataCenterIds: readonly string[];
  dataCenterOrder: 'custom' | 'availability';
}

/** A data center as it stands now. Those of one engine share its machines. */
export interface PodCandidate {
  dataCenterId: string;
  engine: string;
  capacity: Capacity;
  /** Why its engine cannot run the image; undefined where it can. */
  imageProblem: string | undefined;
  /** How its instances can have one network; undefined where they cannot. */
  network?: InstanceNetworkMode;
  /** Addresses that are in use there for something else. */
  subnetsInUse?(): Promise<string[]>;
}

export type PodPlacement = Pick<
  Pod,
  'dataCenterId' | 'gpuTypeId' | 'gpuCount' | 'cpuFlavorId' | 'vcpuCount' | 'memoryInGb' | 'cudaVersion'
>;

/** Where a new pod runs: the most wanted hardware first, among the data centers that may have it. Throws the reason why nowhere. */
export function placePod(
  wish: HardwareRequest,
  volume: NetworkVolume | undefined,
  sites: readonly PodCandidate[],
  held: readonly GpusInUse[],
): PodPlacement {
  const allowed = allowedCandidates(wish, volume, sites);
  const able = allowed.filter(({ imageProblem }) => imageProblem === undefined);
  if (able.length === 0) throw ruleError(allowed[0]?.imageProblem ?? 'no engine can run the image');
  const place =
    wish.compute === 'CPU' ? findCpuPlacement(wish, able) : findGpuPlacement(wish, able, sites, held);
  if (place === undefined) throw capacityError(shortageDetails(wish, able, sites, held));
  return place;
}

/** One data center that has room for all of these pods at once, with the place of each. Throws the reason why there is none. */
export function placeCluster(
  wish: HardwareRequest,
  count: number,
  volume: NetworkVolume | undefined,
  sites: readonly PodCandidate[],
  held: readonly GpusInUse[],
): PodPlacement {
  if (sites.length === 0) throw ruleError('none of the data centers here can give several pods one network');
  const allowed = allowedCandidates(wish, volume, sites);
  const able = allowed.filter(({ imageProblem }) => imageProblem === undefined);
  if (able.length === 0) throw ruleError(allowed[0]?.imageProblem ?? 'no engine can run the image');
  const roomy = able.filter((site) => podCapacity(site, wish, sites, held) >= count);
  const place = roomy.length === 0 ? undefined : findGpuPlacement(wish, roomy, sites, held);
  if (place !== undefined) return place;
  throw capacityError(
    able.map(
      (site) =>
        `${site.dataCenterId}: has room for ${podCapacity(site, wish, sites, held)} pods with ${wish.gpuCount} ${wish.gpuTypeIds.join(', ') || 'GPU'} each, ${count} are asked for; a cluster is in one data center`,
    ),
  );
}

/** How many pods like this fit now: each on one machine, and all of them into what the records leave. */
function podCapacity(
  site: PodCandidate,
  wish: HardwareRequest,
  sites: readonly PodCandidate[],
  held: readonly GpusInUse[],
): number {
  const rooms = site.capacity.gpus
    .filter(({ gpuTypeId }) => wish.gpuTypeIds.includes(gpuTypeId))
    .map((gpu) => {
      const free = freeGpus(site, gpu, sites, held);
      return {
        machine: fits(wish, site, gpu, free) ? Math.floor(gpu.free / wish.gpuCount) : 0,
        records: Math.floor(Math.max(0, unreservedGpus(site, gpu.gpuTypeId, sites, held)) / wish.gpuCount),
      };
    });
  return Math.min(
    rooms.reduce((sum, { machine }) => sum + machine, 0),
    ...rooms.map(({ records }) => records),
  );
}

/** The same place again, for a pod that was stopped. */
export function placeExistingPod(
  pod: Pod,
  gpuCount: number,
  sites: readonly PodCandidate[],
  held: readonly GpusInUse[],
): PodPlacement {
  const { dataCenterId, gpuTypeId, cpuFlavorId, vcpuCount, memoryInGb, cudaVersion } = pod;
  const perGpu = pod.gpuCount === 0 || gpuCount === 0 ? 1 : gpuCount / pod.gpuCount;
  const wish: HardwareRequest = {
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
  const place = placePod(wish, undefined, sites, held);
  // What it had of the machine stays as it was.
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
  sites: readonly PodCandidate[],
): PodCandidate[] {
  if (volume !== undefined && dataCenterIds.length > 0 && !dataCenterIds.includes(volume.dataCenterId)) {
    throw ruleError(
      `network volume ${volume.id} is in ${volume.dataCenterId}, which is not among the data centers ${dataCenterIds.join(', ')}; a pod runs where its volume is`,
    );
  }
  const wanted = volume === undefined ? dataCenterIds : [volume.dataCenterId];
  const allowed =
    wanted.length === 0
      ? [...sites]
      : wanted.flatMap((id) => sites.filter(({ dataCenterId }) => dataCenterId === id));
  if (allowed.length === 0)
    throw new BerthError(
      'capacity',
      `${NO_CAPACITY_MESSAGE} None of the data centers ${wanted.join(', ') || '(any)'} is connected now.`,
    );
  return allowed;
}

/** Cores are shared, and so is memory: what can never fit, or finds the machine full, is refused. */
function findCpuPlacement(
  { cpuFlavors }: HardwareRequest,
  sites: readonly PodCandidate[],
): PodPlacement | undefined {
  for (const choice of cpuFlavors) {
    for (const { dataCenterId, capacity } of sites) {
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
  wish: HardwareRequest,
  able: readonly PodCandidate[],
  sites: readonly PodCandidate[],
  held: readonly GpusInUse[],
): PodPlacement | undefined {
  const options = able
    .flatMap((site) =>
      site.capacity.gpus.map((gpu) => ({ site, gpu, free: freeGpus(site, gpu, sites, held) })),
    )
    .filter(
      ({ site, gpu, free }) =>
        (wish.gpuTypeIds.length === 0 || wish.gpuTypeIds.includes(gpu.gpuTypeId)) &&
        fits(wish, site, gpu, free),
    );
  const most = new Map<string, number>();
  for (const { gpu, free } of options) most.set(gpu.gpuTypeId, Math.max(free, most.get(gpu.gpuTypeId) ?? 0));
  const typeRank = (id: string): number =>
    wish.gpuOrder === 'custom' && wish.gpuTypeIds.length > 0
      ? wish.gpuTypeIds.indexOf(id)
      : -(most.get(id) ?? 0);
  const placeRank = (id: string, free: number): number =>
    wish.dataCenterOrder === 'custom' && wish.dataCenterIds.length > 0
      ? wish.dataCenterIds.indexOf(id)
      : -free;
  // The type counts first, then its name, so that one type is not mixed with another, and then the place.
  const [best] = options.sort(
    (one, other) =>
      typeRank(one.gpu.gpuTypeId) - typeRank(other.gpu.gpuTypeId) ||
      one.gpu.gpuTypeId.localeCompare(other.gpu.gpuTypeId) ||
      placeRank(one.site.dataCenterId, one.free) - placeRank(other.site.dataCenterId, other.free),
  );
  if (best === undefined) return undefined;
  const { gpuCount } = wish;
  const { gpu, site } = best;
  return {
    dataCenterId: site.dataCenterId,
    gpuTypeId: gpu.gpuTypeId,
    gpuCount,
    cpuFlavorId: null,
    vcpuCount: Math.max(VCPU_PER_GPU, wish.minVcpuPerGpu) * gpuCount,
    memoryInGb: memoryInGbFor(wish, gpu, site.capacity),
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

/** What the engine has free, and no more than the records leave: some that are recorded may not have taken theirs yet. */
function freeGpus(
  site: PodCandidate,
  gpu: GpuCapacity,
  sites: readonly PodCandidate[],
  held: readonly GpusInUse[],
): number {
  return Math.min(gpu.free, unreservedGpus(site, gpu.gpuTypeId, sites, held));
}

/** What the records leave of one type, on all machines of the engine together. */
function unreservedGpus(
  { engine }: PodCandidate,
  wanted: string,
  sites: readonly PodCandidate[],
  held: readonly GpusInUse[],
): number {
  const together = new Set(
    sites.filter((site) => site.engine === engine).map(({ dataCenterId }) => dataCenterId),
  );
  const taken = held
    .filter(({ dataCenterId, gpuTypeId }) => together.has(dataCenterId) && gpuTypeId === wanted)
    .reduce((sum, { count }) => sum + count, 0);
  const there =
    sites
      .find((site) => site.engine === engine)
      ?.capacity.gpus.filter(({ gpuTypeId }) => gpuTypeId === wanted)
      .reduce((sum, { total }) => sum + total, 0) ?? 0;
  return there - taken;
}

/** A default is no reason to refuse a small machine. */
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
  sites: readonly PodCandidate[],
  held: readonly GpusInUse[],
): string[] {
  if (compute === 'CPU') {
    const least = Math.min(...cpuFlavors.map(memoryInGbOf));
    return able.map(
      ({ dataCenterId, capacity }) =>
        `${dataCenterId}: the machine has ${capacity.memoryInGb} GB of memory, ${capacity.freeMemoryInGb ?? 'some'} GB free; ${least} GB are asked for`,
    );
  }
  return able.flatMap((site) => {
    const gpus = site.capacity.gpus.filter(
      ({ gpuTypeId }) => gpuTypeIds.length === 0 || gpuTypeIds.includes(gpuTypeId),
    );
    if (gpus.length === 0) return [`${site.dataCenterId}: has no ${gpuTypeIds.join(', ') || 'GPU'}`];
    return gpus.map(
      (gpu) =>
        `${site.dataCenterId}: ${Math.max(0, freeGpus(site, gpu, sites, held))} of ${gpu.total} ${gpu.gpuTypeId} are free, ${gpuCount} are asked for`,
    );
  });
}

function capacityError(details: string[]): BerthError {
  return new BerthError('capacity', NO_CAPACITY_MESSAGE, { details });
}
