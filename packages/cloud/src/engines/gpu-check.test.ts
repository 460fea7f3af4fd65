import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gpuCheckResult } from './gpu-check.ts';

describe('the check of GPUs', () => {
  const nothing = { gpus: [], cudaVersion: null, problem: null, answered: true };

  test('names what the driver lists, by type', () => {
    const gpu = (name: string, memoryInMib: number) => ({ name, memoryInMib, driverVersion: '580.159.04' });
    const gpus = [gpu('NVIDIA H200', 143_771), gpu('NVIDIA H200', 143_771), gpu('NVIDIA A40', 46_068)];
    assert.deepEqual(gpuCheckResult({ ...nothing, gpus, cudaVersion: '13.0' }, false), {
      check: 'gpus',
      ok: true,
      found: '2 x NVIDIA H200 (140 GB), 1 x NVIDIA A40 (45 GB); driver 580.159.04, CUDA 13.0',
    });
  });

  test('passes without a GPU, and fails where the driver does not work', () => {
    assert.equal(gpuCheckResult(nothing, false).ok, true);
    const broken = gpuCheckResult({ ...nothing, problem: 'No devices were found' }, false);
    assert.equal(broken.ok, false);
    assert.match(broken.found, /No devices were found/);
    assert.match(broken.remedy ?? '', /nvidia-smi/);
  });

  test('says whether what asks for a GPU runs on a virtual one', () => {
    assert.match(gpuCheckResult(nothing, false).found, /waits or is refused/);
    assert.match(gpuCheckResult(nothing, true).found, /virtual ones .* runs without one/);
  });
});
