import { BerthError, ruleError } from '../support/errors.ts';
import type { GpuRequest } from './instance.ts';
import type { GpuCapacity } from '../domain/placement/engine-capacity.ts';

export interface GpuAllocation {
  typeId: string;
  /** As the machine counts its GPUs. */
  indexes: readonly number[];
}

/** Which GPUs of the machine are taken. One GPU is held by one instance. */
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
    wish: GpuRequest,
    there: readonly GpuCapacity[],
    indexesOf: ReadonlyMap<string, readonly number[]>,
  ): GpuAllocation {
    const { typeId, count, indexes: wished } = wish;
    const total = there.find((gpu) => gpu.gpuTypeId === typeId)?.total ?? 0;
    if (count > total)
      throw new BerthError(
        'capacity',
        total === 0
          ? `this machine has no ${typeId}`
          : `this machine has ${total} ${typeId}, ${count} are asked for`,
      );
    if (wished !== undefined && wished.length !== count)
      throw ruleError(`${count} GPUs are asked for, and ${wished.length} are named`);
    const free = this.#free(typeId, indexesOf);
    const indexes = (wished ?? free).slice(0, count);
    if (indexes.length < count || !indexes.every((index) => free.includes(index)))
      throw new BerthError(
        'capacity',
        `${free.length} of ${total} ${typeId} are free, ${count} are asked for`,
      );
    const held = { typeId, indexes };
    this.reserve(instanceId, held);
    return held;
  }

  /** What is there, less what is held. */
  withFreeCounts(there: readonly GpuCapacity[]): GpuCapacity[] {
    return there.map((gpu) => {
      const held = [...this.#allocations.values()]
        .filter(({ typeId }) => typeId === gpu.gpuTypeId)
        .reduce((sum, { indexes }) => sum + indexes.length, 0);
      return { ...gpu, free: Math.max(0, gpu.total - held) };
    });
  }

  #free(typeId: string, indexesOf: ReadonlyMap<string, readonly number[]>): number[] {
    const held = new Set([...this.#allocations.values()].flatMap(({ indexes }) => indexes));
    return (indexesOf.get(typeId) ?? []).filter((index) => !held.has(index));
  }
}

/** Where nobody says how the machine counts its GPUs, they are counted through in the order of the list. */
export function sequentialGpuIndexes(gpus: readonly GpuCapacity[]): Map<string, number[]> {
  let next = 0;
  return new Map(
    gpus.map(({ gpuTypeId, total }) => [gpuTypeId, Array.from({ length: total }, () => next++)]),
  );
}
