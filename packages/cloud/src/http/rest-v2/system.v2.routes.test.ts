import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NO_CAPACITY } from '../../domain/placement/engine-capacity.ts';
import { serializeDataCenter } from './system.v2.routes.ts';

const PLACE = {
  dataCenter: {
    id: 'K8S-1',
    name: 'Cluster',
    region: 'EUROPE' as const,
    engine: 'kubernetes',
    networkVolumeTypes: [],
    compliance: [],
    globalNetwork: false,
    countryCode: null,
  },
  isolation: 'containers' as const,
  pods: 1,
  workers: 2,
};
const GPU = {
  gpuTypeId: 'NVIDIA L4',
  total: 2,
  free: 1,
  virtual: false,
  cudaVersion: '12.4',
  memoryInGb: 22,
};

test('the nodes of a cluster are shown with their GPUs', () => {
  const node = { name: 'n1', ready: true, schedulable: false, cores: 3.9, memoryInGb: 7, gpus: [GPU] };
  const { gpuTypeId: id, memoryInGb: memory, ...gpu } = GPU;
  const { memoryInGb, gpus: _, ...shown } = node;
  assert.deepEqual(serializeDataCenter({ ...PLACE, capacity: { ...NO_CAPACITY, nodes: [node] } }).nodes, [
    { ...shown, memory: memoryInGb, gpus: [{ ...gpu, id, memory }] },
  ]);
});

test('another engine has no nodes', () => {
  assert.deepEqual(serializeDataCenter({ ...PLACE, capacity: NO_CAPACITY }).nodes, []);
});
