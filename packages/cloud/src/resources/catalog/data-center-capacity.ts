import { type AvailabilityLevel, availabilityLevel } from '../../domain/catalog/availability.ts';
import type { DataCenterDefinition } from '../../domain/catalog/data-centers.ts';
import { findGpuType, GPU_TYPES, type GpuType, unlistedGpuType } from '../../domain/catalog/gpu-types.ts';
import type { Capacity, GpuCapacity } from '../../domain/placement/engine-capacity.ts';

/** A data center with what its engine has now. */
export interface DataCenterCapacity {
  dataCenter: DataCenterDefinition;
  capacity: Capacity;
}

/** How something stands: a data center for one type, or a type within one data center. */
export interface NamedAvailability {
  id: string;
  name: string;
  availability: AvailabilityLevel;
}

/** The GPUs of one type at a place, one entry per machine. */
export function gpusOfType(place: DataCenterCapacity, gpuTypeId: string): GpuCapacity[] {
  return place.capacity.gpus.filter((gpu) => gpuTypeOf(gpu).id === gpuTypeId);
}

/** The types that machines really have, each once. */
export function connectedGpuTypes(places: readonly DataCenterCapacity[]): GpuType[] {
  const types = places.flatMap(({ capacity }) => capacity.gpus.map(gpuTypeOf));
  return [...new Map(types.map((type) => [type.id, type])).values()];
}

/** The listed types, then whatever else is connected. */
export function listedGpuTypes(places: readonly DataCenterCapacity[]): GpuType[] {
  return [...GPU_TYPES, ...connectedGpuTypes(places).filter((type) => !GPU_TYPES.includes(type))];
}

function gpuTypeOf(gpu: GpuCapacity): GpuType {
  return findGpuType(gpu.gpuTypeId) ?? unlistedGpuType(gpu.gpuTypeId, gpu.memoryInGb);
}

export function dataCenterAvailability(place: DataCenterCapacity, requests: number): NamedAvailability {
  return { id: place.dataCenter.id, name: place.dataCenter.name, availability: availabilityLevel(requests) };
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
