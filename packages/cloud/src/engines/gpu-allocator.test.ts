import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BerthError } from '../support/errors.ts';
import { sequentialGpuIndexes, GpuAllocator } from './gpu-allocator.ts';
import type { GpuCapacity } from '../domain/placement/engine-capacity.ts';

function gpu(gpuTypeId: string, total: number): GpuCapacity {
  return { gpuTypeId, total, free: total, virtual: false, cudaVersion: null, memoryInGb: 24 };
}

const capacities = [gpu('A', 2), gpu('B', 3)];
const indexes = sequentialGpuIndexes(capacities);

function hasCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof BerthError && error.code === code;
}

describe('GPU allocator', () => {
  test('numbers GPUs in the order of the list by default', () => {
    assert.deepEqual(
      [...indexes],
      [
        ['A', [0, 1]],
        ['B', [2, 3, 4]],
      ],
    );
  });

  test('allocates each GPU to one instance', () => {
    const allocator = new GpuAllocator();
    assert.deepEqual(allocator.allocate('one', { typeId: 'B', count: 2 }, capacities, indexes), {
      typeId: 'B',
      indexes: [2, 3],
    });
    assert.deepEqual(
      allocator.withFreeCounts(capacities).map(({ free }) => free),
      [2, 1],
    );
    assert.throws(
      () => allocator.allocate('two', { typeId: 'B', count: 2 }, capacities, indexes),
      hasCode('capacity'),
    );
    allocator.release('one');
    assert.deepEqual(
      allocator.allocate('two', { typeId: 'B', count: 2, indexes: [3, 4] }, capacities, indexes),
      {
        typeId: 'B',
        indexes: [3, 4],
      },
    );
    assert.throws(
      () => allocator.allocate('three', { typeId: 'B', count: 1, indexes: [4] }, capacities, indexes),
      hasCode('capacity'),
    );
    assert.throws(
      () => allocator.allocate('three', { typeId: 'B', count: 1, indexes: [0] }, capacities, indexes),
      hasCode('capacity'),
    );
    assert.throws(
      () => allocator.allocate('three', { typeId: 'B', count: 1, indexes: [2, 2] }, capacities, indexes),
      hasCode('rule'),
    );
    assert.throws(
      () => allocator.allocate('three', { typeId: 'C', count: 1 }, capacities, indexes),
      hasCode('capacity'),
    );
  });

  test('never allocates a GPU twice and never loses one', () => {
    const step = fc.record({
      id: fc.constantFrom('a', 'b', 'c', 'd'),
      typeId: fc.constantFrom('A', 'B'),
      count: fc.integer({ min: 1, max: 3 }),
      take: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const allocator = new GpuAllocator();
        const allocated = new Map<string, readonly number[]>();
        for (const { id, typeId, count, take } of steps) {
          if (!take || allocated.has(id)) {
            allocator.release(id);
            allocated.delete(id);
            continue;
          }
          try {
            allocated.set(id, allocator.allocate(id, { typeId, count }, capacities, indexes).indexes);
          } catch (error) {
            assert.ok(hasCode('capacity')(error));
          }
        }
        const all = [...allocated.values()].flat();
        assert.equal(new Set(all).size, all.length);
        assert.equal(
          allocator.withFreeCounts(capacities).reduce((sum, { free }) => sum + free, 0),
          5 - all.length,
        );
      }),
    );
  });
});
