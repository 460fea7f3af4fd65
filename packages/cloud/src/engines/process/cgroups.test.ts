import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONTAINER_PIDS } from '../../domain/placement/container-sandbox.ts';
import { cgroupFiles } from './cgroups.ts';

test('an instance has as many processes as a container has', () => {
  assert.deepEqual(cgroupFiles({ cpu: 2, memoryInBytes: 1e9 }), {
    'memory.max': '1000000000',
    'memory.oom.group': '1',
    'cpu.weight': '200',
    'pids.max': String(CONTAINER_PIDS),
  });
});

test('the weight of an instance stays in the range of the kernel', () => {
  for (const [cpu, weight] of [
    [0, '1'],
    [0.25, '25'],
    [1_000, '10000'],
  ] as const)
    assert.equal(cgroupFiles({ cpu, memoryInBytes: 0 })['cpu.weight'], weight);
  assert.equal(cgroupFiles({ cpu: 1, memoryInBytes: 0 })['memory.max'], 'max');
});
