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

/** What stock is asked for. Of several products the best placed one counts. */
export interface GpuRequest {
  /** GPUs for each pod or worker; one if not said. */
  count?: number;
  products?: readonly Product[];
  cuda?: CudaRequirement;
}

/**
 * A GPU type as it can be had. Every machine is the operator's own, so the same stock stands
 * behind the secure and the community cloud; only the prices may differ.
 */
export interface GpuOffer {
  type: GpuType;
  /** Nothing but virtual GPUs stand behind it. */
  virtual: boolean;
  /** The most that one pod can ever have: a pod runs on one machine. Zero where none is connected. */
  maxCount: number;
  prices: GpuPrices;

  // What follows counts only the places and machines that the request leaves.
  total: number;
  free: number;
  /** The most that one machine has free now. */
  maxFree: number;
  availability: AvailabilityLevel;
  /** The data centers that have machines for the request, also those where all are taken. */
  dataCenters: NamedAvailability[];
  /** The CUDA versions of those machines, newest first. */
  cudaVersions: CudaVersionAvailability[];
}

export interface CudaVersionAvailability {
  version: string;
  availability: AvailabilityLevel;
}

/** `everywhere` is all there is; `places` are those that the request may use. */
export function gpuOffer(
  type: GpuType,
  everywhere: readonly DataCenterCapacity[],
  places: readonly DataCenterCapacity[],
  request: GpuRequest,
  prices: GpuPrices,
): GpuOffer {
  const connected = everywhere.flatMap((place) => gpusOfType(place, type.id));
  const usable = places.flatMap((place) => usableGpus(place, type.id, request));
  return {
    type,
    virtual: connected.length > 0 && connected.every((gpu) => gpu.virtual),
    maxCount: Math.max(0, ...connected.map((gpu) => gpu.total)),
    prices,
    total: sum(usable.map((gpu) => gpu.total)),
    free: sum(usable.map((gpu) => gpu.free)),
    maxFree: Math.max(0, ...usable.map((gpu) => gpu.free)),
    availability: availabilityLevel(gpuRequestsThatFit(usable, request)),
    dataCenters: places
      .map((place) => ({ place, gpus: usableGpus(place, type.id, request) }))
      .filter(({ gpus }) => gpus.some((gpu) => gpu.total >= requestedCount(request)))
      .map(({ place, gpus }) => dataCenterAvailability(place, gpuRequestsThatFit(gpus, request))),
    cudaVersions: cudaAvailability(usable, request),
  };
}

/** How many orders of this kind could be met at once with these GPUs. */
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

/** The GPUs of a type at a place that meet what is asked of CUDA. */
export function usableGpus(place: DataCenterCapacity, gpuTypeId: string, request: GpuRequest): GpuCapacity[] {
  return gpusOfType(place, gpuTypeId).filter((gpu) => matchesCuda(gpu, request.cuda ?? {}));
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
