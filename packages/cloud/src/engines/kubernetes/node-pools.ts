import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';
import { GPU_TYPES } from '../../domain/catalog/gpu-types.ts';
import { gpuTypeOf } from './gpu-nodes.ts';
import type { NodeObject, PodObject } from './kubernetes-objects.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { readDetails } from './pod-labels.ts';
import { parseQuantity } from './quantity.ts';

/** A node that is not there yet, and is added when a pod waits for it. */
export interface NodeToCome {
  gpus: GpuCapacity;
  vcpu: number;
  memoryInGb: number;
}

/** What the node pools still have to give, without the GPUs that pods already wait for. */
export function nodesToCome(
  nodes: readonly NodeObject[],
  pods: readonly PodObject[],
  { nodePools, gpuLabel, gpuResource }: Pick<ClusterSettings, 'nodePools' | 'gpuLabel' | 'gpuResource'>,
): NodeToCome[] {
  if (nodePools.length === 0) return [];
  const there = nodes.map(({ metadata, status }) => ({
    gpuTypeId: gpuTypeOf(metadata.labels?.[gpuLabel] ?? ''),
    gpus: parseQuantity(status.allocatable?.[gpuResource] ?? '0'),
  }));
  const toCome = nodePools.flatMap(({ gpu, gpusPerNode, maxNodes, vcpu, memoryInGb }) => {
    const gpuTypeId = gpuTypeOf(gpu);
    // Each node that is there is of one pool.
    const own = there.filter((node) => node.gpuTypeId === gpuTypeId && node.gpus === gpusPerNode);
    for (const node of own.slice(0, maxNodes)) there.splice(there.indexOf(node), 1);
    return Array.from({ length: Math.max(0, maxNodes - own.length) }, () => ({
      gpus: {
        gpuTypeId,
        total: gpusPerNode,
        free: gpusPerNode,
        virtual: false,
        // Only a node that is there tells its driver.
        cudaVersion: null,
        memoryInGb: GPU_TYPES.find(({ id }) => id === gpuTypeId)?.memoryInGb ?? 0,
      },
      vcpu,
      memoryInGb,
    }));
  });
  for (const { metadata, spec } of pods) {
    const wanted = spec.nodeName === undefined ? readDetails(metadata)?.gpus : undefined;
    const node = toCome.find(
      ({ gpus }) => gpus.gpuTypeId === wanted?.typeId && gpus.free >= (wanted?.count ?? 0),
    );
    if (node !== undefined && wanted) node.gpus.free -= wanted.count;
  }
  return toCome;
}
