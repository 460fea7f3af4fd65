import type { Capacity, GpuCapacity, InstanceNetworks } from '../../engines/engine.ts';
import type { HeldGpus, Pod } from '../../store/pods.ts';
import type { Compute, CpuChoice, NetworkVolume } from '../../store/records.ts';
import { BerthError, rule } from '../../support/errors.ts';
import { type CudaRequirement, matchesCuda } from '../catalog/cuda-match.ts';
import { memoryOf } from '../endpoints/cpu-selection.ts';

/** Kept word for word: clients recognise a full house by it. */
export const NO_CAPACITY =
  'There are no longer any instances available with the requested specifications. Please refresh and try again.';

/** What a pod gets of the machine for each of its GPUs, where it does not ask for more. */
const VCPU_PER_GPU = 4;
const MEMORY_PER_GPU_GB = 16;
/** Less than this and a machine is full. */
const LEAST_FREE_GB = 0.25;

/** What hardware a pod asks for. */
export interface HardwareWish {
  compute: Compute;
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
export interface PodSite {
  dataCenterId: string;
  engine: string;
  capacity: Capacity;
  /** Why its engine cannot run the image; undefined where it can. */
  imageProblem: string | undefined;
  /** How its instances can have one network; undefined where they cannot. */
  network?: InstanceNetworks;
  /** Addresses that are in use there for something else. */
  subnetsInUse?(): Promise<string[]>;
}

export type PodPlace = Pick<
  Pod,
  'dataCenterId' | 'gpuTypeId' | 'gpuCount' | 'cpuFlavorId' | 'vcpuCount' | 'memoryInGb' | 'cudaVersion'
>;

/** Where a new pod runs: the most wanted hardware first, among the data centers that may have it. Throws the reason why nowhere. */
export function placePod(
  wish: HardwareWish,
  volume: NetworkVolume | undefined,
  sites: readonly PodSite[],
  held: readonly HeldGpus[],
): PodPlace {
  const allowed = allowedSites(wish, volume, sites);
  const able = allowed.filter(({ imageProblem }) => imageProblem === undefined);
  if (able.length === 0) throw rule(allowed[0]?.imageProblem ?? 'no engine can run the image');
  const place = wish.compute === 'CPU' ? cpuPlace(wish, able) : gpuPlace(wish, able, sites, held);
  if (place === undefined) throw full(shortage(wish, able, sites, held));
  return place;
}

/** One data center that has room for all of these pods at once, with the place of each. Throws the reason why there is none. */
export function placeTogether(
  wish: HardwareWish,
  count: number,
  volume: NetworkVolume | undefined,
  sites: readonly PodSite[],
  held: readonly HeldGpus[],
): PodPlace {
  if (sites.length === 0) throw rule('none of the data centers here can give several pods one network');
  const allowed = allowedSites(wish, volume, sites);
  const able = allowed.filter(({ imageProblem }) => imageProblem === undefined);
  if (able.length === 0) throw rule(allowed[0]?.imageProblem ?? 'no engine can run the image');
  const roomy = able.filter((site) => roomAt(site, wish, sites, held) >= count);
  const place = roomy.length === 0 ? undefined : gpuPlace(wish, roomy, sites, held);
  if (place !== undefined) return place;
  throw full(
    able.map(
      (site) =>
        `${site.dataCenterId}: has room for ${roomAt(site, wish, sites, held)} pods with ${wish.gpuCount} ${wish.gpuTypeIds.join(', ') || 'GPU'} each, ${count} are asked for; a cluster is in one data center`,
    ),
  );
}

/** How many pods like this fit now: each on one machine, and all of them into what the records leave. */
function roomAt(
  site: PodSite,
  wish: HardwareWish,
  sites: readonly PodSite[],
  held: readonly HeldGpus[],
): number {
  const rooms = site.capacity.gpus
    .filter(({ gpuTypeId }) => wish.gpuTypeIds.includes(gpuTypeId))
    .map((gpu) => {
      const free = freeAt(site, gpu, sites, held);
      return {
        machine: fits(wish, site, gpu, free) ? Math.floor(gpu.free / wish.gpuCount) : 0,
        records: Math.floor(Math.max(0, leftAt(site, gpu.gpuTypeId, sites, held)) / wish.gpuCount),
      };
    });
  return Math.min(
    rooms.reduce((sum, { machine }) => sum + machine, 0),
    ...rooms.map(({ records }) => records),
  );
}

/** The same place again, for a pod that was stopped. */
export function placeAgain(
  pod: Pod,
  gpuCount: number,
  sites: readonly PodSite[],
  held: readonly HeldGpus[],
): PodPlace {
  const { dataCenterId, gpuTypeId, cpuFlavorId, vcpuCount, memoryInGb, cudaVersion } = pod;
  const perGpu = pod.gpuCount === 0 || gpuCount === 0 ? 1 : gpuCount / pod.gpuCount;
  const wish: HardwareWish = {
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

function allowedSites(
  { dataCenterIds }: HardwareWish,
  volume: NetworkVolume | undefined,
  sites: readonly PodSite[],
): PodSite[] {
  if (volume !== undefined && dataCenterIds.length > 0 && !dataCenterIds.includes(volume.dataCenterId)) {
    throw rule(
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
      `${NO_CAPACITY} None of the data centers ${wanted.join(', ') || '(any)'} is connected now.`,
    );
  return allowed;
}

/** Cores are shared, and so is memory: what can never fit, or finds the machine full, is refused. */
function cpuPlace({ cpuFlavors }: HardwareWish, sites: readonly PodSite[]): PodPlace | undefined {
  for (const choice of cpuFlavors) {
    for (const { dataCenterId, capacity } of sites) {
      const memoryInGb = memoryOf(choice);
      if (memoryInGb <= capacity.memoryInGb && (capacity.freeMemoryInGb ?? Infinity) >= LEAST_FREE_GB) {
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

function gpuPlace(
  wish: HardwareWish,
  able: readonly PodSite[],
  sites: readonly PodSite[],
  held: readonly HeldGpus[],
): PodPlace | undefined {
  const options = able
    .flatMap((site) => site.capacity.gpus.map((gpu) => ({ site, gpu, free: freeAt(site, gpu, sites, held) })))
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
    memoryInGb: memoryFor(wish, gpu, site.capacity),
    cudaVersion: gpu.cudaVersion,
  };
}

function fits(
  { gpuCount, cuda, minMemoryPerGpu }: HardwareWish,
  { capacity }: PodSite,
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
function freeAt(
  site: PodSite,
  gpu: GpuCapacity,
  sites: readonly PodSite[],
  held: readonly HeldGpus[],
): number {
  return Math.min(gpu.free, leftAt(site, gpu.gpuTypeId, sites, held));
}

/** What the records leave of one type, on all machines of the engine together. */
function leftAt(
  { engine }: PodSite,
  wanted: string,
  sites: readonly PodSite[],
  held: readonly HeldGpus[],
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
function memoryFor(
  { gpuCount, minMemoryPerGpu }: HardwareWish,
  { virtual }: GpuCapacity,
  { memoryInGb }: Capacity,
): number {
  const usual = MEMORY_PER_GPU_GB * gpuCount;
  const asked = minMemoryPerGpu * gpuCount;
  return Math.max(asked, virtual ? usual : Math.min(usual, memoryInGb));
}

function shortage(
  { compute, gpuTypeIds, gpuCount, cpuFlavors }: HardwareWish,
  able: readonly PodSite[],
  sites: readonly PodSite[],
  held: readonly HeldGpus[],
): string[] {
  if (compute === 'CPU') {
    const least = Math.min(...cpuFlavors.map(memoryOf));
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
        `${site.dataCenterId}: ${Math.max(0, freeAt(site, gpu, sites, held))} of ${gpu.total} ${gpu.gpuTypeId} are free, ${gpuCount} are asked for`,
    );
  });
}

function full(details: string[]): BerthError {
  return new BerthError('capacity', NO_CAPACITY, { details });
}
