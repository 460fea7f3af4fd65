import { cpus, totalmem } from 'node:os';
import { findNvidiaGpus, type NvidiaSmiResult } from './nvidia-smi.ts';
import type { CpuCapacity, GpuCapacity } from '../domain/placement/engine-capacity.ts';

/** This machine, as far as it can be seen from a process. */
export interface Machine {
  cpu: CpuCapacity;
  memoryInGb: number;
  /** Real ones only. */
  gpus: GpuCapacity[];
  /** Why no GPU was found although there should be one. */
  gpuProblem: string | null;
  /** False when there may be GPUs that did not show themselves. */
  gpusKnown: boolean;
  /** By type, the numbers under which the driver knows them; without it they are counted through in the order of `gpus`. */
  gpuIndexes?: ReadonlyMap<string, readonly number[]>;
}

export async function readMachine(
  findGpus: () => Promise<NvidiaSmiResult> = findNvidiaGpus,
): Promise<Machine> {
  const findings = await findGpus();
  return {
    cpu: readCpu(),
    memoryInGb: readMemory(),
    gpus: gpuCapacities(findings),
    gpuProblem: findings.problem,
    gpusKnown: findings.answered,
    gpuIndexes: gpuIndexesByType(findings),
  };
}

/** The list is in the order in which the driver counts. */
export function gpuIndexesByType({ gpus }: Pick<NvidiaSmiResult, 'gpus'>): Map<string, number[]> {
  const numbered = gpus.map(({ name }, index) => ({ name, index }));
  return new Map(
    [...Map.groupBy(numbered, ({ name }) => name)].map(([name, same]) => [
      name,
      same.map(({ index }) => index),
    ]),
  );
}

/** GPUs of one name are one entry. Memory is the smallest of them, so that what is promised fits on each. */
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

/** Node counts threads and does not tell which of them share a core, so each counts as one. */
function readCpu(): CpuCapacity {
  const threads = cpus();
  return { model: threads[0]?.model.trim() || 'unknown', cores: threads.length, threads: threads.length };
}

/** What the machine has, or what the container that Berth runs in leaves of it. */
function readMemory(): number {
  const limit = process.constrainedMemory() || Infinity;
  return Math.max(1, Math.round(Math.min(totalmem(), limit) / 1024 ** 3));
}
