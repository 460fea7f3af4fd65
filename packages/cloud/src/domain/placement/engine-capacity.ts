export type EngineKind = 'process' | 'docker' | 'kubernetes';

/** Drivers declare what they can do, so that callers need not try. */
export interface EngineCapabilities {
  /** Images of a registry, or only folders of this machine. */
  images: 'containers' | 'folders';
  /** A command can be run in a terminal. */
  terminal: boolean;
  /** Cores are not reserved: instances share those there are. */
  sharesCores: boolean;
  /** How several instances can have one network; not at all where it is left out. */
  networks?: InstanceNetworkMode;
}

/**
 * How an engine keeps the instances of accounts apart. `containers`: each in a container. `namespaces`: each
 * account as a user of its own, in namespaces. `users`: only as a user of its own. `refused`: other accounts
 * than root can run nothing. `none`: not at all, since the operator wants it so.
 */
export const ACCOUNT_ISOLATION = ['containers', 'namespaces', 'users', 'refused', 'none'] as const;
export type AccountIsolation = (typeof ACCOUNT_ISOLATION)[number];

/**
 * `bridge`: instances are put into a network of their own, each at its address. `loopback`: they share this
 * machine's addresses, and each has one of them to itself. `names`: each gets another address with every start,
 * and the others reach it by its name.
 */
export type InstanceNetworkMode = 'bridge' | 'loopback' | 'names';

export interface Capacity {
  cpu: CpuCapacity;
  memoryInGb: number;
  /** What is really free now, where the driver knows it. */
  freeMemoryInGb?: number;
  /** One entry per machine and GPU type: a request for several GPUs must fit into one entry. */
  gpus: readonly GpuCapacity[];
  /** The machines, where the engine has several. */
  nodes?: readonly NodeCapacity[];
}

export interface NodeCapacity {
  name: string;
  /** Whether it is up. */
  ready: boolean;
  /** Whether it takes new instances, or only keeps those that it has. */
  schedulable: boolean;
  cores: number;
  memoryInGb: number;
  gpus: readonly GpuCapacity[];
}

export interface CpuCapacity {
  model: string;
  cores: number;
  threads: number;
}

export interface GpuCapacity {
  /** A known id, or the driver's name for a GPU that is in no list. */
  gpuTypeId: string;
  total: number;
  free: number;
  /** Only a name: there is no hardware behind it. */
  virtual: boolean;
  /** The newest CUDA version that the driver supports; null for a GPU without one. */
  cudaVersion: string | null;
  /** As the driver counts it, rounded; 0 where it does not say. */
  memoryInGb: number;
}

export const NO_CAPACITY: Capacity = {
  cpu: { model: 'unknown', cores: 0, threads: 0 },
  memoryInGb: 0,
  gpus: [],
};
