import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterCapacity } from './cluster-nodes.ts';
import type { NodeObject } from './kubernetes-objects.ts';
import { DEFAULT_CLUSTER_SETTINGS } from './kubernetes-options.ts';

function node(
  name: string,
  cpu: string,
  memory: string,
  { ready = true, cordoned = false, gpus = 0 } = {},
): NodeObject {
  return {
    metadata: {
      name,
      uid: name,
      ...(gpus > 0 && {
        labels: { 'nvidia.com/gpu.product': 'NVIDIA-L4', 'nvidia.com/gpu.memory': '23034' },
      }),
    },
    spec: cordoned ? { unschedulable: true } : {},
    status: {
      allocatable: { cpu, memory, ...(gpus > 0 && { 'nvidia.com/gpu': String(gpus) }) },
      conditions: [
        { type: 'MemoryPressure', status: 'False' },
        { type: 'Ready', status: ready ? 'True' : 'Unknown' },
      ],
      nodeInfo: { architecture: 'arm64' },
    },
  };
}

test('every node is shown; the largest that takes instances is what there is', () => {
  const capacity = clusterCapacity(
    [
      node('small', '3920m', '7Gi', { gpus: 2 }),
      node('large', '16', '66Gi'),
      node('gone', '64', '256Gi', { ready: false, gpus: 8 }),
      node('closed', '32', '128Gi', { cordoned: true }),
    ],
    [
      {
        metadata: { name: 'pod', uid: 'pod' },
        spec: {
          nodeName: 'small',
          containers: [{ name: 'main', resources: { requests: { 'nvidia.com/gpu': '1' } } }],
        },
      },
    ],
    DEFAULT_CLUSTER_SETTINGS,
  );
  const l4 = {
    gpuTypeId: 'NVIDIA L4',
    total: 2,
    free: 1,
    virtual: false,
    cudaVersion: null,
    memoryInGb: 22,
  };
  assert.deepEqual(capacity, {
    cpu: { model: 'arm64', cores: 16, threads: 16 },
    memoryInGb: 66,
    gpus: [l4],
    nodes: [
      { name: 'small', ready: true, schedulable: true, cores: 3.92, memoryInGb: 7, gpus: [l4] },
      { name: 'large', ready: true, schedulable: true, cores: 16, memoryInGb: 66, gpus: [] },
      {
        name: 'gone',
        ready: false,
        schedulable: true,
        cores: 64,
        memoryInGb: 256,
        gpus: [{ ...l4, total: 8, free: 8 }],
      },
      { name: 'closed', ready: true, schedulable: false, cores: 32, memoryInGb: 128, gpus: [] },
    ],
  });
});

test('a cluster without a node that takes instances has room for nothing', () => {
  const { cpu, memoryInGb, gpus } = clusterCapacity(
    [node('gone', '64', '256Gi', { ready: false })],
    [],
    DEFAULT_CLUSTER_SETTINGS,
  );
  assert.deepEqual([cpu.cores, memoryInGb, gpus], [0, 0, []]);
});
