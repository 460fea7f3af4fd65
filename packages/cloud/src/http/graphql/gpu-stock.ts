import type { AvailabilityLevel } from '../../domain/catalog/availability.ts';
import { ruleError } from '../../support/errors.ts';
import { GPU_COUNT } from '../../domain/limits.ts';

/** Clients take any word for something that can be had, so no stock is null and never the word None. */
const STOCK_LABELS: Record<AvailabilityLevel, string | null> = {
  HIGH: 'High',
  MEDIUM: 'Medium',
  LOW: 'Low',
  NONE: null,
};

export function stockStatus(level: AvailabilityLevel): string | null {
  return STOCK_LABELS[level];
}

/** What is asked of stock, where GPUs are meant. */
export interface GpuStockInput {
  gpuCount?: number;
  allowedCudaVersions?: string[];
  minCudaVersion?: string;
  cudaVersion?: string;
}

export function gpuStockFilter({
  gpuCount,
  allowedCudaVersions,
  minCudaVersion,
  cudaVersion,
}: GpuStockInput) {
  if (gpuCount !== undefined && gpuCount < GPU_COUNT.minimum)
    throw ruleError(`gpuCount must be at least ${GPU_COUNT.minimum}, got ${gpuCount}`);
  const allowed = allowedCudaVersions ?? (cudaVersion === undefined ? undefined : [cudaVersion]);
  return {
    ...(gpuCount !== undefined && { count: gpuCount }),
    cuda: {
      ...(allowed !== undefined && { allowed }),
      ...(minCudaVersion !== undefined && { minimum: minCudaVersion }),
    },
  };
}
