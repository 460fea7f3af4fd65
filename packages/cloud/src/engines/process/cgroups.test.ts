import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CONTAINER_PIDS } from '../../domain/placement/container-sandbox.ts';
import { cgroupFiles, Cgroups } from './cgroups.ts';

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

test('all instances together weigh a third of another service', () => {
  const parent = mkdtempSync(join(tmpdir(), 'berth-cgroups-'));
  try {
    // What the kernel would create with the folder.
    mkdirSync(join(parent, 'instances'));
    for (const path of ['cgroup.procs', 'instances/cgroup.controllers', 'instances/cpu.weight'])
      writeFileSync(join(parent, path), path.endsWith('controllers') ? 'cpu memory\n' : '');
    assert.notEqual(Cgroups.open('instances', { path: parent, isRoot: true }), undefined);
    const read = (name: string): string => readFileSync(join(parent, 'instances', name), 'utf8');
    assert.deepEqual([read('cgroup.subtree_control'), read('cpu.weight')], ['+cpu +memory', '33']);
  } finally {
    rmSync(parent, { recursive: true });
  }
});
