import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { BerthError } from '../support/errors.ts';
import { sequentialGpuIndexes, GpuAllocator } from './gpu-allocator.ts';
import type { GpuCapacity } from '../domain/placement/engine-capacity.ts';

function gpu(gpuTypeId: string, total: number): GpuCapacity {
  return { gpuTypeId, total, free: total, virtual: false, cudaVersion: null, memoryInGb: 24 };
}

const there = [gpu('A', 2), gpu('B', 3)];
const indexes = sequentialGpuIndexes(there);

function hasCode(code: string): (error: unknown) => boolean {
  return (error) => error instanceof BerthError && error.code === code;
}

describe('the shelf of GPUs', () => {
  test('counts through where nobody else does', () => {
    assert.deepEqual(
      [...indexes],
      [
        ['A', [0, 1]],
        ['B', [2, 3, 4]],
      ],
    );
  });

  test('gives each GPU to one', () => {
    const shelf = new GpuAllocator();
    assert.deepEqual(shelf.allocate('one', { typeId: 'B', count: 2 }, there, indexes), {
      typeId: 'B',
      indexes: [2, 3],
    });
    assert.deepEqual(
      shelf.withFreeCounts(there).map(({ free }) => free),
      [2, 1],
    );
    assert.throws(
      () => shelf.allocate('two', { typeId: 'B', count: 2 }, there, indexes),
      hasCode('capacity'),
    );
    shelf.release('one');
    assert.deepEqual(shelf.allocate('two', { typeId: 'B', count: 2, indexes: [3, 4] }, there, indexes), {
      typeId: 'B',
      indexes: [3, 4],
    });
    assert.throws(
      () => shelf.allocate('three', { typeId: 'B', count: 1, indexes: [4] }, there, indexes),
      hasCode('capacity'),
    );
    assert.throws(
      () => shelf.allocate('three', { typeId: 'B', count: 1, indexes: [0] }, there, indexes),
      hasCode('capacity'),
    );
    assert.throws(
      () => shelf.allocate('three', { typeId: 'B', count: 1, indexes: [2, 2] }, there, indexes),
      hasCode('rule'),
    );
    assert.throws(
      () => shelf.allocate('three', { typeId: 'C', count: 1 }, there, indexes),
      hasCode('capacity'),
    );
  });

  test('never gives a GPU twice, nor loses one', () => {
    const step = fc.record({
      id: fc.constantFrom('a', 'b', 'c', 'd'),
      typeId: fc.constantFrom('A', 'B'),
      count: fc.integer({ min: 1, max: 3 }),
      take: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step), (steps) => {
        const shelf = new GpuAllocator();
        const held = new Map<string, readonly number[]>();
        for (const { id, typeId, count, take } of steps) {
          if (!take || held.has(id)) {
            shelf.release(id);
            held.delete(id);
            continue;
          }
          try {
            held.set(id, shelf.allocate(id, { typeId, count }, there, indexes).indexes);
          } catch (error) {
            assert.ok(hasCode('capacity')(error));
          }
        }
        const all = [...held.values()].flat();
        assert.equal(new Set(all).size, all.length);
        assert.equal(
          shelf.withFreeCounts(there).reduce((sum, { free }) => sum + free, 0),
          5 - all.length,
        );
      }),
    );
  });
});
