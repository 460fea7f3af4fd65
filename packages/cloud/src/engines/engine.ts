export type EngineKind = 'process';

/** A driver that runs instances: the containers or processes behind pods and workers. */
export interface Engine {
  readonly kind: EngineKind;

  /** What it has to run things on. Rejects with `unavailable` when the engine cannot be reached. */
  capacity(): Promise<Capacity>;
}

export interface Capacity {
  cpu: CpuCapacity;
  memoryInGb: number;
  /** One entry per machine and GPU type: a request for several GPUs must fit into one entry. */
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

export const NO_CAPACITY: Capacity = { cpu: { model: 'unknown', cores: 0, threads: 0 }, memoryInGb: 0, gpus: [] };
