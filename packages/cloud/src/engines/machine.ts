import { cpus, totalmem } from 'node:os';
import { findNvidiaGpus, type NvidiaSmiResult } from './nvidia-smi.ts';
import type { CpuCapacity, GpuCapacity } from '../domain/placement/engine-capacity.ts';

/** The resources of this machine. */
export interface Machine {
  cpu: CpuCapacity;
  memoryInGb: number;
  /** Real ones only. */
  gpus: GpuCapacity[];
  /** Why no GPU was found although nvidia-smi exists. */
  gpuProblem: string | null;
  /** False when the driver did not answer, so there may be GPUs. */
  gpusKnown: boolean;
  /** The driver's indexes by type; by default GPUs are numbered in the order of `gpus`. */
  gpuIndexes?: ReadonlyMap<string, readonly number[]>;
}

export async function readMachine(
  findGpus: () => Promise<NvidiaSmiResult> = findNvidiaGpus,
): Promise<Machine> {
  const result = await findGpus();
  return {
    cpu: readCpu(),
    memoryInGb: readMemory(),
    gpus: gpuCapacities(result),
    gpuProblem: result.problem,
    gpusKnown: result.answered,
    gpuIndexes: gpuIndexesByType(result),
  };
}

/** nvidia-smi lists GPUs in the order of their indexes. */
export function gpuIndexesByType({ gpus }: Pick<NvidiaSmiResult, 'gpus'>): Map<string, number[]> {
  const numbered = gpus.map(({ name }, index) => ({ name, index }));
  return new Map(
    [...Map.groupBy(numbered, ({ name }) => name)].map(([name, same]) => [
      name,
      same.map(({ index }) => index),
    ]),
  );
}

/** GPUs of one name are one entry, with the smallest memory among them, so that it holds for each. */
export function gpuCapacities({ gpus, cudaVersion }: NvidiaSmiResult): GpuCapacity[] {
  const byName = Map.groupBy(gpus, (gpu) => gpu.name);
  return [...byName].map(([name, same]) => ({
    gpuTypeId: name,
    total: same.length,
    free: same.length,
    virtual: false,
    cudaVersion,
    memoryInGb: Math.round(Math.min(...same.map((gpu) => gpu.memoryInMib)) / 1024),
  }));
}

/** Node reports threads and not which of them share a core, so each counts as a core. */
function readCpu(): CpuCapacity {
  const threads = cpus();
  return { model: threads[0]?.model.trim() || 'unknown', cores: threads.length, threads: threads.length };
}

/** The machine's memory, or the limit of the container that Berth runs in. */
function readMemory(): number {
  const limit = process.constrainedMemory() || Infinity;
  return Math.max(1, Math.round(Math.min(totalmem(), limit) / 1024 ** 3));
}
