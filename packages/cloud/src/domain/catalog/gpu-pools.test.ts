import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findGpuPool, GPU_POOLS } from './gpu-pools.ts';
import { GPU_TYPES } from './gpu-types.ts';

describe('GPU pools', () => {
  test('every pool that a type names is there, and none is empty', () => {
    const named = new Set(GPU_TYPES.map((type) => type.pool).filter((pool) => pool !== null));
    assert.deepEqual(new Set(GPU_POOLS.map((pool) => pool.id)), named);
  });

  test('a type is in one pool at most', () => {
    const ids = GPU_POOLS.flatMap((pool) => pool.gpuTypeIds);
    assert.equal(new Set(ids).size, ids.length);
  });

  test('all H100 variants share one pool', () => {
    assert.deepEqual(findGpuPool('ADA_80_PRO')?.gpuTypeIds, [
      'NVIDIA H100 80GB HBM3',
      'NVIDIA H100 NVL',
      'NVIDIA H100 PCIe',
    ]);
    assert.deepEqual(findGpuPool('HOPPER_141')?.gpuTypeIds, ['NVIDIA H200']);
  });

  test('an unknown pool is not found', () => {
    assert.equal(findGpuPool('AMPERE_1'), undefined);
  });
});
