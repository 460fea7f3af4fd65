import { type AvailabilityLevel, availabilityLevel } from '../../domain/catalog/availability.ts';
import type { DataCenterDefinition } from '../../domain/catalog/data-centers.ts';
import { findGpuType, GPU_TYPES, type GpuType, unlistedGpuType } from '../../domain/catalog/gpu-types.ts';
import type { Capacity, GpuCapacity } from '../../domain/placement/engine-capacity.ts';

/** A data center with the current capacity of its engine. */
export interface DataCenterCapacity {
  dataCenter: DataCenterDefinition;
  capacity: Capacity;
}

/** Availability of one type in a data center, or of a data center for one type. */
export interface NamedAvailability {
  id: string;
  name: string;
  availability: AvailabilityLevel;
}

/** The GPUs of one type in a data center, one entry per machine. */
export function gpusOfType(site: DataCenterCapacity, gpuTypeId: string): GpuCapacity[] {
  return site.capacity.gpus.filter((gpu) => gpuTypeOf(gpu).id === gpuTypeId);
}

/** The GPU types that are connected, without duplicates. */
export function connectedGpuTypes(sites: readonly DataCenterCapacity[]): GpuType[] {
  const types = sites.flatMap(({ capacity }) => capacity.gpus.map(gpuTypeOf));
  return [...new Map(types.map((type) => [type.id, type])).values()];
}

/** The known GPU types, then connected types that are not known. */
export function listedGpuTypes(sites: readonly DataCenterCapacity[]): GpuType[] {
  return [...GPU_TYPES, ...connectedGpuTypes(sites).filter((type) => !GPU_TYPES.includes(type))];
}

function gpuTypeOf({ gpuTypeId, memoryInGb }: GpuCapacity): GpuType {
  return findGpuType(gpuTypeId) ?? unlistedGpuType(gpuTypeId, memoryInGb);
}

export function dataCenterAvailability(site: DataCenterCapacity, requests: number): NamedAvailability {
  return { id: site.dataCenter.id, name: site.dataCenter.name, availability: availabilityLevel(requests) };
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
