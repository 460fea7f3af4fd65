import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findGpuType, GPU_TYPES, unlistedGpuType, UNLISTED_GPU_TYPES } from './gpu-types.ts';

describe('GPU types', () => {
  test('each has an id of its own and some memory', () => {
    const ids = [...GPU_TYPES, ...UNLISTED_GPU_TYPES].map((type) => type.id);
    assert.equal(new Set(ids).size, ids.length);
    assert.ok(GPU_TYPES.every((type) => type.memoryInGb > 0));
  });

  test('an id finds its type', () => {
    for (const type of GPU_TYPES) assert.equal(findGpuType(type.id), type);
    assert.deepEqual(findGpuType('NVIDIA H200'), {
      id: 'NVIDIA H200',
      name: 'H200 SXM',
      memoryInGb: 141,
      pool: 'HOPPER_141',
      manufacturer: 'NVIDIA',
    });
    assert.equal(findGpuType('AMD Instinct MI300X OAM')?.manufacturer, 'AMD');
  });

  test('spellings that existing definitions use find the real type', () => {
    const real = (id: string): string | undefined => findGpuType(id)?.id;
    assert.equal(real('NVIDIA  RTX A4500'), 'NVIDIA RTX A4500');
    assert.equal(real('NVIDIA  A30'), 'NVIDIA A30');
    assert.equal(real('NVIDIA RTX A30'), 'NVIDIA A30');
    assert.equal(real('NVIDIA GeForce RTX 3080TI'), 'NVIDIA GeForce RTX 3080 Ti');
    assert.equal(real('NVIDIA A5000 Ada'), 'NVIDIA RTX 5000 Ada Generation');
    assert.equal(real(' NVIDIA L40 '), 'NVIDIA L40');
  });

  test('accepted types are found, and not listed', () => {
    for (const id of ['Tesla T4', 'Tesla V100-FHHL-16GB', 'Tesla V100-PCIE-32GB']) {
      assert.equal(findGpuType(id)?.id, id);
      assert.ok(!GPU_TYPES.some((type) => type.id === id));
    }
  });

  test('an unknown id finds no type', () => {
    for (const id of ['', 'unknown', 'constructor', 'nvidia l40']) assert.equal(findGpuType(id), undefined);
  });

  test('a GPU in no list is a type of its own', () => {
    assert.deepEqual(unlistedGpuType('NVIDIA GeForce RTX 3060', 12), {
      id: 'NVIDIA GeForce RTX 3060',
      name: 'RTX 3060',
      memoryInGb: 12,
      pool: null,
      manufacturer: 'NVIDIA',
    });
    assert.equal(unlistedGpuType('Quadro RTX 8000', 48).manufacturer, 'NVIDIA');
    assert.equal(unlistedGpuType('AMD Instinct MI250X', 128).manufacturer, 'AMD');
  });
});
