import {
  type AvailabilityLevel,
  availabilityLevel,
  requestsThatFit,
} from '../../domain/catalog/availability.ts';
import {
  type CudaRequirement,
  cudaVersionsOf,
  matchesCuda,
  meetsCudaRequirement,
} from '../../domain/catalog/cuda-requirements.ts';
import { compareCudaVersions } from '../../domain/catalog/cuda-versions.ts';
import type { GpuType } from '../../domain/catalog/gpu-types.ts';
import {
  type NamedAvailability,
  dataCenterAvailability,
  gpusOfType,
  type DataCenterCapacity,
  sum,
} from './data-center-capacity.ts';
import type { GpuPrices } from '../../domain/catalog/prices.ts';
import { type Product, MIN_MACHINES } from '../../domain/catalog/products.ts';
import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';

/** A request for GPUs. With several products, the one that needs the fewest machines counts. */
export interface GpuRequest {
  /** GPUs per pod or worker. Default: 1. */
  count?: number;
  products?: readonly Product[];
  cuda?: CudaRequirement;
}

/**
 * A GPU type with its prices and availability. Every machine belongs to the operator, so the secure and the
 * community cloud share the same GPUs; only the prices may differ.
 */
export interface GpuOffer {
  type: GpuType;
  /** True if all its GPUs are virtual. */
  virtual: boolean;
  /** The most GPUs that one pod can have, since a pod runs on one machine. Zero if none is connected. */
  maxCount: number;
  prices: GpuPrices;

  // The following fields count only the data centers and machines that match the request.
  total: number;
  free: number;
  /** The most GPUs that are free on one machine now. */
  maxFree: number;
  availability: AvailabilityLevel;
  /** The data centers with machines that are large enough, including those with none free. */
  dataCenters: NamedAvailability[];
  /** The CUDA versions of those machines, newest first. */
  cudaVersions: CudaVersionAvailability[];
}

export interface CudaVersionAvailability {
  version: string;
  availability: AvailabilityLevel;
}

/** `everywhere` are all data centers; `sites` are those that match the request. */
export function gpuOffer(
  type: GpuType,
  everywhere: readonly DataCenterCapacity[],
  sites: readonly DataCenterCapacity[],
  request: GpuRequest,
  prices: GpuPrices,
): GpuOffer {
  const connected = everywhere.flatMap((site) => gpusOfType(site, type.id));
  const usable = sites.flatMap((site) => usableGpus(site, type.id, request));
  return {
    type,
    virtual: connected.length > 0 && connected.every((gpu) => gpu.virtual),
    maxCount: Math.max(0, ...connected.map((gpu) => gpu.total)),
    prices,
    total: sum(usable.map((gpu) => gpu.total)),
    free: sum(usable.map((gpu) => gpu.free)),
    maxFree: Math.max(0, ...usable.map((gpu) => gpu.free)),
    availability: availabilityLevel(gpuRequestsThatFit(usable, request)),
    dataCenters: sites
      .map((site) => ({ site, gpus: usableGpus(site, type.id, request) }))
      .filter(({ gpus }) => gpus.some((gpu) => gpu.total >= requestedCount(request)))
      .map(({ site, gpus }) => dataCenterAvailability(site, gpuRequestsThatFit(gpus, request))),
    cudaVersions: cudaAvailability(usable, request),
  };
}

/** How many requests of this kind these GPUs can serve at the same time. */
export function gpuRequestsThatFit(gpus: readonly GpuCapacity[], request: GpuRequest): number {
  const fitting = requestsThatFit(
    gpus.map((gpu) => gpu.free),
    requestedCount(request),
  );
  const smallest = Math.min(
    ...(request.products?.length ? request.products : ['POD' as const]).map(
      (product) => MIN_MACHINES[product],
    ),
  );
  return Math.floor(fitting / smallest);
}

/** The GPUs of a type in a data center that meet the CUDA requirement. */
export function usableGpus(site: DataCenterCapacity, gpuTypeId: string, request: GpuRequest): GpuCapacity[] {
  return gpusOfType(site, gpuTypeId).filter((gpu) => matchesCuda(gpu, request.cuda ?? {}));
}

function cudaAvailability(gpus: readonly GpuCapacity[], request: GpuRequest): CudaVersionAvailability[] {
  const versions = new Set(
    gpus.flatMap(cudaVersionsOf).filter((version) => meetsCudaRequirement(version, request.cuda ?? {})),
  );
  return [...versions]
    .sort((a, b) => compareCudaVersions(b, a))
    .map((version) => ({
      version,
      availability: availabilityLevel(
        gpuRequestsThatFit(
          gpus.filter((gpu) => cudaVersionsOf(gpu).includes(version)),
          request,
        ),
      ),
    }));
}

function requestedCount(request: GpuRequest): number {
  return request.count ?? 1;
}
