import type { Capacity, GpuCapacity } from '../../engines/engine.ts';
import { type AvailabilityLevel, availabilityLevel } from './availability.ts';
import type { DataCenterDefinition } from './data-centers.ts';
import { findGpuType, GPU_TYPES, type GpuType, gpuTypeOfItsOwn } from './gpu-types.ts';

/** A data center with what its engine has now. */
export interface Place {
  dataCenter: DataCenterDefinition;
  capacity: Capacity;
}

/** How something stands: a data center for one type, or a type within one data center. */
export interface AvailabilityOf {
  id: string;
  name: string;
  availability: AvailabilityLevel;
}

/** The GPUs of one type at a place, one entry per machine. */
export function gpusAt(place: Place, gpuTypeId: string): GpuCapacity[] {
  return place.capacity.gpus.filter((gpu) => typeOf(gpu).id === gpuTypeId);
}

/** The types that machines really have, each once. */
export function connectedTypes(places: readonly Place[]): GpuType[] {
  const types = places.flatMap(({ capacity }) => capacity.gpus.map(typeOf));
  return [...new Map(types.map((type) => [type.id, type])).values()];
}

/** The listed types, then whatever else is connected. */
export function typesAt(places: readonly Place[]): GpuType[] {
  return [...GPU_TYPES, ...connectedTypes(places).filter((type) => !GPU_TYPES.includes(type))];
}

function typeOf(gpu: GpuCapacity): GpuType {
  return findGpuType(gpu.gpuTypeId) ?? gpuTypeOfItsOwn(gpu.gpuTypeId, gpu.memoryInGb);
}

export function availabilityAt(place: Place, requests: number): AvailabilityOf {
  return { id: place.dataCenter.id, name: place.dataCenter.name, availability: availabilityLevel(requests) };
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
