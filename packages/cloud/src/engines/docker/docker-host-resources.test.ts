import assert from 'node:assert/strict';
import { release } from 'node:os';
import { describe, test } from 'node:test';
import type { NvidiaSmiResult } from '../nvidia-smi.ts';
import { capacityOf, hostResourcesFrom } from './docker-host-resources.ts';
import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';

const none: NvidiaSmiResult = { gpus: [], cudaVersion: null, problem: null, answered: true };
const two: NvidiaSmiResult = {
  ...none,
  gpus: ['NVIDIA H200', 'NVIDIA L4', 'NVIDIA H200'].map((name) => ({
    name,
    memoryInMib: 24_576,
    driverVersion: '580.1',
  })),
  cudaVersion: '13.0',
};
const virtual: GpuCapacity[] = [
  { gpuTypeId: 'NVIDIA A40', total: 2, free: 2, virtual: true, cudaVersion: null, memoryInGb: 48 },
];
const info = { NCPU: 16, MemTotal: 64 * 1024 ** 3, KernelVersion: 'elsewhere' };

describe('host resources of the daemon', () => {
  test('GPUs count if the daemon can attach them', () => {
    assert.deepEqual(hostResourcesFrom(info, none, virtual).gpus, virtual);
    assert.deepEqual(hostResourcesFrom(info, two, virtual).gpus, []);
    for (const able of [
      { ...info, Runtimes: { nvidia: {} } },
      { ...info, DiscoveredDevices: [{ ID: 'nvidia.com/gpu=0' }] },
    ]) {
      const hostResources = hostResourcesFrom(able, two, virtual);
      assert.deepEqual(
        hostResources.gpus.map(({ gpuTypeId, total }) => [gpuTypeId, total]),
        [
          ['NVIDIA H200', 2],
          ['NVIDIA L4', 1],
        ],
      );
      assert.deepEqual(
        [...hostResources.gpuIndexes],
        [
          ['NVIDIA H200', [0, 2]],
          ['NVIDIA L4', [1]],
        ],
      );
    }
  });

  test('no virtual GPU is offered while the driver does not answer', () => {
    assert.deepEqual(hostResourcesFrom(info, { ...none, answered: false }, virtual).gpus, []);
  });

  test('some storage drivers can limit a disk', () => {
    const on = (driver: string, fileSystem: string): boolean =>
      hostResourcesFrom(
        { ...info, Driver: driver, DriverStatus: [['Backing Filesystem', fileSystem]] },
        none,
        [],
      ).limitsDisk;
    assert.deepEqual(
      [on('overlay2', 'extfs'), on('overlay2', 'xfs'), on('zfs', ''), on('vfs', 'xfs')],
      [false, true, true, false],
    );
  });

  test('free memory is reported for this machine only', () => {
    assert.deepEqual(capacityOf(hostResourcesFrom(info, none, []), []), {
      cpu: { model: 'unknown', cores: 16, threads: 16 },
      memoryInGb: 64,
      gpus: [],
    });
    assert.equal(
      typeof capacityOf(hostResourcesFrom({ ...info, KernelVersion: release() }, none, []), [])
        .freeMemoryInGb,
      'number',
    );
  });
});
