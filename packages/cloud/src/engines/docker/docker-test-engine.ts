import { createHash } from 'node:crypto';
import type { InstanceEngine } from '../engine.ts';
import { createDockerEngine } from './docker-engine.ts';
import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';

/** The daemon's address for all processes of a test run. */
export const TEST_HOST = 'BERTH_TEST_DOCKER_HOST';
export const VIRTUAL_GPU: GpuCapacity = {
  gpuTypeId: 'NVIDIA L4',
  total: 2,
  free: 2,
  virtual: true,
  cudaVersion: null,
  memoryInGb: 24,
};

/**
 * A Docker engine with virtual GPUs, whatever the real machine has. Each folder is an installation of its
 * own.
 */
export function openEngine(data: string): Promise<InstanceEngine> {
  const host = process.env[TEST_HOST];
  if (host === undefined) throw new Error(`${TEST_HOST} is not set`);
  const installation = createHash('sha256').update(data).digest('hex').slice(0, 12);
  return Promise.resolve(
    createDockerEngine({
      installation,
      data,
      host,
      virtualGpus: [VIRTUAL_GPU],
      findGpus: () => Promise.resolve({ gpus: [], cudaVersion: null, problem: null, answered: true }),
    }),
  );
}
