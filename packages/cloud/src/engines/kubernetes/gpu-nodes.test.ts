import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gpuCapacity, gpusInUse, gpuTypeOf, productsOf } from './gpu-nodes.ts';
import type { NodeObject, PodObject } from './kubernetes-objects.ts';
import { DEFAULT_CLUSTER_SETTINGS } from './kubernetes-options.ts';
import { parseQuantity } from './quantity.ts';

function node(name: string, product: string, gpus: string): NodeObject {
  return {
    metadata: {
      name,
      uid: name,
      labels: { 'nvidia.com/gpu.product': product, 'nvidia.com/gpu.memory': '23034' },
    },
    spec: {},
    status: { allocatable: { 'nvidia.com/gpu': gpus } },
  };
}

test('quantities are read', () => {
  assert.deepEqual(['500m', '2', '64Mi', '1e3', '1Gi', '3k', '', 'nonsense'].map(parseQuantity), [
    0.5,
    2,
    64 * 2 ** 20,
    1000,
    2 ** 30,
    3000,
    0,
    0,
  ]);
});

test('labels of GPU feature discovery are known GPU types', () => {
  assert.deepEqual(
    [
      'NVIDIA-L4',
      'NVIDIA-A100-SXM4-80GB',
      'NVIDIA-H100-80GB-HBM3',
      'NVIDIA-L4-SHARED',
      'NVIDIA-Future-1',
    ].map(gpuTypeOf),
    ['NVIDIA L4', 'NVIDIA A100-SXM4-80GB', 'NVIDIA H100 80GB HBM3', 'NVIDIA L4', 'NVIDIA Future 1'],
  );
  assert.deepEqual(
    productsOf(
      'NVIDIA L4',
      [node('a', 'NVIDIA-L4', '1'), node('b', 'NVIDIA-A40', '1')],
      'nvidia.com/gpu.product',
    ),
    ['NVIDIA-L4'],
  );
});

test('each node is a machine of its own, without the GPUs that pods hold', () => {
  const pod: PodObject = {
    metadata: { name: 'p', uid: 'p' },
    spec: {
      nodeName: 'a',
      containers: [{ name: 'main', resources: { requests: { 'nvidia.com/gpu': '3' } } }],
    },
  };
  const used = gpusInUse([pod], DEFAULT_CLUSTER_SETTINGS);
  const found = [node('a', 'NVIDIA-L4', '4'), node('b', 'NVIDIA-L4', '2'), node('c', '', '0')].flatMap(
    (one) => gpuCapacity(one, used, DEFAULT_CLUSTER_SETTINGS) ?? [],
  );
  assert.deepEqual(
    found.map(({ gpuTypeId, total, free, memoryInGb }) => [gpuTypeId, total, free, memoryInGb]),
    [
      ['NVIDIA L4', 4, 1, 22],
      ['NVIDIA L4', 2, 2, 22],
    ],
  );
});
