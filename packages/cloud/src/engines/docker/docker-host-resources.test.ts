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

describe('what the daemon has', () => {
  test('GPUs count where the daemon can hand them out', () => {
    assert.deepEqual(hostResourcesFrom(info, none, virtual).gpus, virtual);
    assert.deepEqual(hostResourcesFrom(info, two, virtual).gpus, []);
    for (const able of [
      { ...info, Runtimes: { nvidia: {} } },
      { ...info, DiscoveredDevices: [{ ID: 'nvidia.com/gpu=0' }] },
    ]) {
      const ground = hostResourcesFrom(able, two, virtual);
      assert.deepEqual(
        ground.gpus.map(({ gpuTypeId, total }) => [gpuTypeId, total]),
        [
          ['NVIDIA H200', 2],
          ['NVIDIA L4', 1],
        ],
      );
      assert.deepEqual(
        [...ground.gpuIndexes],
        [
          ['NVIDIA H200', [0, 2]],
          ['NVIDIA L4', [1]],
        ],
      );
    }
  });

  test('no virtual GPU stands in for a driver that is slow to answer', () => {
    assert.deepEqual(hostResourcesFrom(info, { ...none, answered: false }, virtual).gpus, []);
  });

  test('a disk can be limited by some storage drivers', () => {
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

  test('what is free is told of this machine alone', () => {
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
