import { cpus, release } from 'node:os';
import type { Clock } from '../../support/clock.ts';
import { staleWhileRevalidate } from '../../support/stale-while-revalidate.ts';
import { sequentialGpuIndexes } from '../gpu-allocator.ts';
import { gpuCapacities, gpuIndexesByType } from '../machine.ts';
import type { NvidiaSmiResult } from '../nvidia-smi.ts';
import type { Daemon } from './daemon.ts';
import type { Capacity, GpuCapacity } from '../../domain/placement/engine-capacity.ts';

const CACHE_TTL_MS = 60_000;
const BYTES_PER_GB = 1024 ** 3;
/** Storage drivers that can limit the size of a container's disk; overlay2 can on one file system alone. */
const DISK_LIMIT_DRIVERS = ['btrfs', 'zfs', 'devicemapper'];

/** As much of the daemon's account of itself as is needed here. */
export interface DaemonInfo {
  NCPU?: number;
  MemTotal?: number;
  KernelVersion?: string;
  Driver?: string;
  DriverStatus?: [string, string][] | null;
  Runtimes?: Record<string, unknown>;
  DiscoveredDevices?: { ID?: string }[] | null;
}

/** What the daemon has to run things on. */
export interface DockerHostResources {
  cores: number;
  memoryInBytes: number;
  gpus: readonly GpuCapacity[];
  /** By type, the numbers under which the driver knows them. */
  gpuIndexes: ReadonlyMap<string, readonly number[]>;
  limitsDisk: boolean;
  /** Its machine is this one, and not one inside it or elsewhere. */
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

/** Looks at the ground now and then. */
export function hostResourcesReader({
  daemon,
  virtualGpus,
  findGpus,
  clock,
  onProblem,
}: DockerHostResourcesDeps): () => Promise<DockerHostResources> {
  return staleWhileRevalidate(
    async () => {
      const [info, findings] = await Promise.all([
        daemon.call((client) => client.info() as Promise<DaemonInfo>),
        findGpus(),
      ]);
      return hostResourcesFrom(info, findings, virtualGpus);
    },
    CACHE_TTL_MS,
    clock,
    (error) => onProblem('the Docker daemon could not be asked what it has', error),
  );
}

export function hostResourcesFrom(
  info: DaemonInfo,
  findings: NvidiaSmiResult,
  virtualGpus: readonly GpuCapacity[],
): DockerHostResources {
  const real = supportsGpus(info) ? gpuCapacities(findings) : [];
  // Virtual GPUs never stand beside real ones that the daemon cannot hand out, nor in for real ones whose driver is only slow to answer.
  const gpus = findings.gpus.length === 0 && findings.answered ? virtualGpus : real;
  return {
    cores: info.NCPU ?? 1,
    memoryInBytes: info.MemTotal ?? 0,
    gpus,
    gpuIndexes: gpus === virtualGpus ? sequentialGpuIndexes(gpus) : gpuIndexesByType(findings),
    limitsDisk: limitsDisk(info),
    isThisMachine: info.KernelVersion === release(),
  };
}

/** The daemon can hand GPUs to a container: it has NVIDIA's runtime, or knows the devices by itself. */
function supportsGpus({ Runtimes: runtimes, DiscoveredDevices: devices }: DaemonInfo): boolean {
  return (
    'nvidia' in (runtimes ?? {}) || (devices ?? []).some(({ ID: id }) => id?.startsWith('nvidia.com/gpu'))
  );
}

function limitsDisk({ Driver: driver = '', DriverStatus: status }: DaemonInfo): boolean {
  const fileSystem = (status ?? []).find(([name]) => name === 'Backing Filesystem')?.[1];
  return DISK_LIMIT_DRIVERS.includes(driver) || (driver === 'overlay2' && fileSystem === 'xfs');
}

/** Cores and memory are shared, so what is free of the memory is what is really free, where that can be known. */
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
