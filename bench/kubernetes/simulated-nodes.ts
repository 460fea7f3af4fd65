import type { KubernetesClient } from '../../packages/cloud/src/engines/kubernetes/client/kubernetes-client.ts';
import type {
  NodeObject,
  ObjectList,
} from '../../packages/cloud/src/engines/kubernetes/kubernetes-objects.ts';
import { waitFor } from '../../packages/testing/src/wait-for.ts';

const AT_ONCE = 10;
/** Every fourth node has GPUs. */
const GPU_EVERY = 4;

/** Nodes that are objects only, and are ready. */
export async function createSimulatedNodes(cluster: KubernetesClient, count: number): Promise<void> {
  let next = 0;
  const line = async (): Promise<void> => {
    while (next < count) await cluster.create('/api/v1/nodes', simulatedNode(next++));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, line));
  await waitFor(
    'the simulated nodes are ready',
    async () => {
      const { items } = await cluster.get<ObjectList<NodeObject>>('/api/v1/nodes');
      return items.every(({ status }) =>
        status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
      );
    },
    120_000,
  );
}

function simulatedNode(index: number): unknown {
  const hasGpus = index % GPU_EVERY === 0;
  const resources = {
    cpu: '64',
    memory: '512Gi',
    pods: '110',
    'ephemeral-storage': '4Ti',
    ...(hasGpus && { 'nvidia.com/gpu': '8' }),
  };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `simulated-${index}`,
      labels: {
        type: 'kwok',
        'kubernetes.io/hostname': `simulated-${index}`,
        ...(hasGpus && { 'nvidia.com/gpu.product': 'NVIDIA-L4', 'nvidia.com/gpu.memory': '23034' }),
      },
    },
    status: { allocatable: resources, capacity: resources },
  };
}
