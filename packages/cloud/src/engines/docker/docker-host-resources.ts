import { cpus, release } from 'node:os';
import type { Clock } from '../../support/clock.ts';
import { staleWhileRevalidate } from '../../support/stale-while-revalidate.ts';
import type { FileOwner } from '../../support/file-owner.ts';
import { sequentialGpuIndexes } from '../gpu-allocator.ts';
import { gpuCapacities, gpuIndexesByType } from '../machine.ts';
import type { NvidiaSmiResult } from '../nvidia-smi.ts';
import type { DaemonInfo } from './client/docker-objects.ts';
import type { DaemonSecurity } from './container-sandbox.ts';
import type { Daemon } from './daemon.ts';
import type { Capacity, GpuCapacity } from '../../domain/placement/engine-capacity.ts';

const CACHE_TTL_MS = 60_000;
const BYTES_PER_GB = 1024 ** 3;
/** Storage drivers that can limit a container's disk; overlay2 can only on xfs. */
const DISK_LIMIT_DRIVERS = ['btrfs', 'zfs', 'devicemapper'];

/** The resources of the daemon's machine. */
export interface DockerHostResources {
  cores: number;
  memoryInBytes: number;
  gpus: readonly GpuCapacity[];
  /** The GPU driver's indexes by type. */
  gpuIndexes: ReadonlyMap<string, readonly number[]>;
  limitsDisk: boolean;
  security: DaemonSecurity;
  /** Whom root in a container is on the machine, where the daemon remaps users. */
  remappedRoot?: FileOwner;
  /** Whether the daemon runs on this machine, not in a virtual machine or elsewhere. */
  isThisMachine: boolean;
}

export interface DockerHostResourcesDeps {
  daemon: Daemon;
  /** Offered where there is no real GPU. */
  virtualGpus: readonly GpuCapacity[];
  findGpus: () => Promise<NvidiaSmiResult>;
  clock: Clock;
  onProblem: (what: string, error: unknown) => void;
}

/** Reads the resources and caches them. */
export function hostResourcesReader({
  daemon,
  virtualGpus,
  findGpus,
  clock,
  onProblem,
}: DockerHostResourcesDeps): () => Promise<DockerHostResources> {
  return staleWhileRevalidate(
    async () => {
      const [info, gpuResult] = await Promise.all([
        daemon.call((client) => client.get<DaemonInfo>('/info')),
        findGpus(),
      ]);
      return hostResourcesFrom(info, gpuResult, virtualGpus);
    },
    CACHE_TTL_MS,
    clock,
    (error) => onProblem('the resources of the Docker daemon could not be read', error),
  );
}

export function hostResourcesFrom(
  info: DaemonInfo,
  gpuResult: NvidiaSmiResult,
  virtualGpus: readonly GpuCapacity[],
): DockerHostResources {
  const real = supportsGpus(info) ? gpuCapacities(gpuResult) : [];
  // Virtual GPUs are offered only where there are no real ones, even ones that the daemon cannot attach, and
  // not while the GPU driver fails to answer.
  const gpus = gpuResult.gpus.length === 0 && gpuResult.answered ? virtualGpus : real;
  return {
    cores: info.NCPU ?? 1,
    memoryInBytes: info.MemTotal ?? 0,
    gpus,
    gpuIndexes: gpus === virtualGpus ? sequentialGpuIndexes(gpus) : gpuIndexesByType(gpuResult),
    limitsDisk: limitsDisk(info),
    security: daemonSecurity(info),
    ...remappedRoot(info),
    isThisMachine: info.KernelVersion === release(),
  };
}

function daemonSecurity({ Runtimes: runtimes, SecurityOptions: options }: DaemonInfo): DaemonSecurity {
  return {
    runtimes: Object.keys(runtimes ?? {}).sort(),
    remapsUsers: (options ?? []).some((option) => /name=(userns|rootless)\b/.test(option)),
  };
}

/** A daemon that remaps users keeps its data in a folder named after the one that root becomes. */
function remappedRoot({ DockerRootDir: folder = '', SecurityOptions: options }: DaemonInfo): {
  remappedRoot?: FileOwner;
} {
  const [, uid, gid] = /\/(\d+)\.(\d+)$/.exec(folder) ?? [];
  if (uid === undefined || !(options ?? []).includes('name=userns')) return {};
  return { remappedRoot: { uid: Number(uid), gid: Number(gid) } };
}

/** Whether the daemon can attach GPUs: it has NVIDIA's runtime, or knows the devices itself. */
function supportsGpus({ Runtimes: runtimes, DiscoveredDevices: devices }: DaemonInfo): boolean {
  return (
    'nvidia' in (runtimes ?? {}) || (devices ?? []).some(({ ID: id }) => id?.startsWith('nvidia.com/gpu'))
  );
}

function limitsDisk({ Driver: driver = '', DriverStatus: status }: DaemonInfo): boolean {
  const fileSystem = (status ?? []).find(([name]) => name === 'Backing Filesystem')?.[1];
  return DISK_LIMIT_DRIVERS.includes(driver) || (driver === 'overlay2' && fileSystem === 'xfs');
}

/** Cores and memory are shared, so free memory is the machine's real free memory, where it is known. */
export function capacityOf(
  { cores, memoryInBytes, isThisMachine }: DockerHostResources,
  gpus: readonly GpuCapacity[],
): Capacity {
  return {
    cpu: { model: (isThisMachine && cpus()[0]?.model.trim()) || 'unknown', cores, threads: cores },
    memoryInGb: Math.max(1, Math.round(memoryInBytes / BYTES_PER_GB)),
    ...(isThisMachine && {
      freeMemoryInGb: Math.floor((10 * process.availableMemory()) / BYTES_PER_GB) / 10,
    }),
    gpus,
  };
}
