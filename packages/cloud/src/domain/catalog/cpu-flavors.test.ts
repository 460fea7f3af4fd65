import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CPU_FLAVORS, findCpuFlavor } from './cpu-flavors.ts';

describe('CPU flavours', () => {
  test('two generations of three classes', () => {
    assert.deepEqual(
      CPU_FLAVORS.map((flavor) => flavor.id),
      ['cpu3c', 'cpu3g', 'cpu3m', 'cpu5c', 'cpu5g', 'cpu5m'],
    );
    assert.deepEqual(
      CPU_FLAVORS.map((flavor) => flavor.ramGbPerVcpu),
      [2, 4, 8, 2, 4, 8],
    );
    assert.deepEqual(
      CPU_FLAVORS.map((flavor) => flavor.diskGbPerVcpu),
      [10, 10, 10, 15, 15, 15],
    );
  });

  test('the memory-optimized ones are for pods alone', () => {
    assert.deepEqual(
      CPU_FLAVORS.filter((flavor) => !flavor.products.includes('SERVERLESS')).map((flavor) => flavor.id),
      ['cpu3m', 'cpu5m'],
    );
    assert.ok(CPU_FLAVORS.every((flavor) => flavor.products.includes('POD')));
  });

  test('found by id', () => {
    assert.equal(findCpuFlavor('cpu5g')?.group, 'Gen 5');
    assert.equal(findCpuFlavor('cpu9x'), undefined);
  });
});
