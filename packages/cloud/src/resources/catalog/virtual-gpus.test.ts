import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { BerthError } from '../../support/errors.ts';
import { virtualGpus } from './virtual-gpus.ts';

describe('virtual GPUs', () => {
  test('two each of three common types', () => {
    assert.deepEqual(
      virtualGpus('virtual').map(({ gpuTypeId, total, free, virtual }) => [gpuTypeId, total, free, virtual]),
      [
        ['NVIDIA GeForce RTX 4090', 2, 2, true],
        ['NVIDIA A100 80GB PCIe', 2, 2, true],
        ['NVIDIA H100 80GB HBM3', 2, 2, true],
      ],
    );
  });

  test('none unless they are turned on', () => {
    assert.deepEqual(virtualGpus('auto'), []);
    assert.deepEqual(virtualGpus('none'), []);
    assert.deepEqual(virtualGpus([]), []);
  });

  test('two each of the types named, in any accepted spelling', () => {
    assert.deepEqual(
      virtualGpus(['NVIDIA  A30', 'NVIDIA A30', 'NVIDIA L4']).map(({ gpuTypeId, total, memoryInGb }) => [
        gpuTypeId,
        total,
        memoryInGb,
      ]),
      [
        ['NVIDIA A30', 2, 24],
        ['NVIDIA L4', 2, 24],
      ],
    );
  });

  test('a number before a type sets the count', () => {
    assert.deepEqual(
      virtualGpus(['8x NVIDIA A40', 'NVIDIA L4']).map(({ gpuTypeId, total, free }) => [
        gpuTypeId,
        total,
        free,
      ]),
      [
        ['NVIDIA A40', 8, 8],
        ['NVIDIA L4', 2, 2],
      ],
    );
    assert.throws(() => virtualGpus(['0x NVIDIA A40']), BerthError);
  });

  test('an unknown type is refused', () => {
    assert.throws(
      () => virtualGpus(['RTX 4090']),
      (error: unknown) =>
        error instanceof BerthError && error.code === 'rule' && error.message.includes('"RTX 4090"'),
    );
  });
});
