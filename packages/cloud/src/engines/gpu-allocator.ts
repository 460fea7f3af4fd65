import { BerthError, ruleError } from '../support/errors.ts';
import type { GpuRequest } from './instance.ts';
import type { GpuCapacity } from '../domain/placement/engine-capacity.ts';

export interface GpuAllocation {
  typeId: string;
  /** The GPU driver's indexes. */
  indexes: readonly number[];
}

/** Tracks which GPUs of the machine are allocated. Each GPU belongs to at most one instance. */
export class GpuAllocator {
  readonly #allocations = new Map<string, GpuAllocation>();

  reserve(instanceId: string, gpus: GpuAllocation): void {
    this.#allocations.set(instanceId, gpus);
  }

  release(instanceId: string): void {
    this.#allocations.delete(instanceId);
  }

  allocate(
    instanceId: string,
    request: GpuRequest,
    capacities: readonly GpuCapacity[],
    indexesOf: ReadonlyMap<string, readonly number[]>,
  ): GpuAllocation {
    const { typeId, count, indexes: requested } = request;
    const total = capacities.find((gpu) => gpu.gpuTypeId === typeId)?.total ?? 0;
    if (count > total)
      throw new BerthError(
        'capacity',
        total === 0
          ? `this machine has no ${typeId}`
          : `this machine has ${total} ${typeId}, ${count} requested`,
      );
    if (requested !== undefined && requested.length !== count)
      throw ruleError(`${count} GPUs are requested, and ${requested.length} are named`);
    const free = this.#free(typeId, indexesOf);
    const indexes = (requested ?? free).slice(0, count);
    if (indexes.length < count || !indexes.every((index) => free.includes(index)))
      throw new BerthError('capacity', `${free.length} of ${total} ${typeId} are free, ${count} requested`);
    const allocation = { typeId, indexes };
    this.reserve(instanceId, allocation);
    return allocation;
  }

  /** The capacities with their current free counts. */
  withFreeCounts(capacities: readonly GpuCapacity[]): GpuCapacity[] {
    return capacities.map((gpu) => {
      const allocated = [...this.#allocations.values()]
        .filter(({ typeId }) => typeId === gpu.gpuTypeId)
        .reduce((sum, { indexes }) => sum + indexes.length, 0);
      return { ...gpu, free: Math.max(0, gpu.total - allocated) };
    });
  }

  #free(typeId: string, indexesOf: ReadonlyMap<string, readonly number[]>): number[] {
    const allocated = new Set([...this.#allocations.values()].flatMap(({ indexes }) => indexes));
    return (indexesOf.get(typeId) ?? []).filter((index) => !allocated.has(index));
  }
}

/** Default indexes: GPUs are numbered in the order of the list. */
export function sequentialGpuIndexes(gpus: readonly GpuCapacity[]): Map<string, number[]> {
  let next = 0;
  return new Map(
    gpus.map(({ gpuTypeId, total }) => [gpuTypeId, Array.from({ length: total }, () => next++)]),
  );
}
