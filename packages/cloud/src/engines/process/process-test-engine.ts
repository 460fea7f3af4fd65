import type { InstanceEngine } from '../engine.ts';
import type { Machine } from '../machine.ts';
import { ProcessEngine } from './process-engine.ts';
import type { ProcessEngineOptions } from './process-engine-options.ts';
import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';

export const VIRTUAL_GPU: GpuCapacity = {
  gpuTypeId: 'NVIDIA L4',
  total: 2,
  free: 2,
  virtual: true,
  cudaVersion: null,
  memoryInGb: 24,
};

const machine: Machine = {
  cpu: { model: 'Sample CPU', cores: 2, threads: 2 },
  memoryInGb: 8,
  gpus: [],
  gpuProblem: null,
  gpusKnown: true,
};

export const testEngineOptions = {
  virtualGpus: [VIRTUAL_GPU],
  readMachine: () => Promise.resolve(machine),
};

/** A process engine with virtual GPUs, whatever the real machine has. */
export function openEngine(data: string, more: Partial<ProcessEngineOptions> = {}): Promise<InstanceEngine> {
  return Promise.resolve(new ProcessEngine({ data, ...testEngineOptions, ...more }));
}
