import { compareCudaVersions, CUDA_VERSIONS } from './cuda-versions.ts';
import type { GpuCapacity } from '../placement/engine-capacity.ts';

/**
 * What a definition asks of CUDA: one of a list, or at least some version. Neither means any machine will do.
 */
export interface CudaRequirement {
  allowed?: readonly string[];
  minimum?: string | null;
}

type CudaCapability = Pick<GpuCapacity, 'virtual' | 'cudaVersion'>;

/** An empty list asks for nothing. */
export function meetsCudaRequirement(version: string, requirement: CudaRequirement): boolean {
  const { allowed = [], minimum } = requirement;
  if (allowed.length > 0 && !allowed.some((candidate) => compareCudaVersions(candidate, version) === 0))
    return false;
  return minimum === undefined || minimum === null || compareCudaVersions(version, minimum) >= 0;
}

/** The versions that a GPU counts as. A virtual one has no driver, so it stands in for each that is known. */
export function cudaVersionsOf(gpu: CudaCapability): readonly string[] {
  if (gpu.virtual) return CUDA_VERSIONS;
  return gpu.cudaVersion === null ? [] : [gpu.cudaVersion];
}

/** A GPU without CUDA suits only those who ask nothing of it. */
export function matchesCuda(gpu: CudaCapability, requirement: CudaRequirement): boolean {
  if (!asksForCuda(requirement)) return true;
  return cudaVersionsOf(gpu).some((version) => meetsCudaRequirement(version, requirement));
}

function asksForCuda({ allowed = [], minimum }: CudaRequirement): boolean {
  return allowed.length > 0 || (minimum !== undefined && minimum !== null);
}
