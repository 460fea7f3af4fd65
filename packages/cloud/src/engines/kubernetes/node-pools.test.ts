import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clusterCapacity } from './cluster-nodes.ts';
import type { NodeObject, PodObject } from './kubernetes-objects.ts';
import { DEFAULT_CLUSTER_SETTINGS } from './kubernetes-options.ts';
import { nodesToCome } from './node-pools.ts';
import { instanceMetadata } from './pod-labels.ts';

const SETTINGS = {
  ...DEFAULT_CLUSTER_SETTINGS,
  nodePools: [{ gpu: 'NVIDIA L4', gpusPerNode: 2, maxNodes: 3, vcpu: 16, memoryInGb: 64 }],
};

function node(name: string, product: string, gpus: string): NodeObject {
  return {
    metadata: { name, uid: name, labels: { 'nvidia.com/gpu.product': product } },
    spec: {},
    status: {
      allocatable: { 'nvidia.com/gpu': gpus, cpu: '8', memory: '32Gi' },
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
}

function pod(id: string, typeId: string, count: number, nodeName?: string): PodObject {
  const details = { id, image: '', labels: {}, ports: [], memoryInGb: 1, gpus: { typeId, count } };
  return {
    metadata: { name: id, uid: id, ...instanceMetadata('here', 'K8S-1', details) },
    spec: {
      ...(nodeName !== undefined && { nodeName }),
      containers: [{ name: 'main', resources: { requests: { 'nvidia.com/gpu': String(count) } } }],
    },
  };
}

test('a pool without a node has room for its largest number of nodes', () => {
  const { gpus, cpu, memoryInGb } = clusterCapacity([], [], SETTINGS);
  assert.deepEqual(
    gpus.map(({ gpuTypeId, total, free, memoryInGb: each }) => [gpuTypeId, total, free, each]),
    Array.from({ length: 3 }, () => ['NVIDIA L4', 2, 2, 24]),
  );
  assert.deepEqual([cpu.cores, memoryInGb], [16, 64]);
});

test('nodes that are there count, also those of other GPUs or sizes, which are of no pool', () => {
  const nodes = [node('a', 'NVIDIA-L4', '2'), node('b', 'NVIDIA-L4', '4'), node('c', 'NVIDIA-A40', '2')];
  assert.equal(nodesToCome(nodes, [], SETTINGS).length, 2);
  const full = ['a', 'b', 'c', 'd'].map((name) => node(name, 'NVIDIA-L4', '2'));
  assert.deepEqual(nodesToCome(full, [], SETTINGS), []);
});

test('pods that wait for a node hold GPUs of nodes to come, others those of their node', () => {
  const pods = [pod('a', 'NVIDIA L4', 2), pod('b', 'NVIDIA L4', 1), pod('c', 'NVIDIA A40', 2)];
  const free = (nodes: NodeObject[], all: PodObject[]): number[] =>
    clusterCapacity(nodes, all, SETTINGS).gpus.map((gpu) => gpu.free);
  assert.deepEqual(free([], pods), [0, 1, 2]);
  assert.deepEqual(free([node('a', 'NVIDIA-L4', '2')], [pod('a', 'NVIDIA L4', 2, 'a')]), [0, 2, 2]);
});

test('two pools of the same nodes share those that are there', () => {
  const twice = { ...SETTINGS, nodePools: [...SETTINGS.nodePools, ...SETTINGS.nodePools] };
  const nodes = ['a', 'b', 'c', 'd'].map((name) => node(name, 'NVIDIA-L4', '2'));
  assert.equal(nodesToCome(nodes, [], twice).length, 2);
});
