import type { Capacity, GpuCapacity, NodeCapacity } from '../../domain/placement/engine-capacity.ts';
import type { Clock } from '../../support/clock.ts';
import { staleWhileRevalidate } from '../../support/stale-while-revalidate.ts';
import type { KubernetesClient } from './client/kubernetes-client.ts';
import { toKubernetesError } from './client/kubernetes.errors.ts';
import { listObjects } from './client/list-objects.ts';
import { gpuCapacity, gpusInUse } from './gpu-nodes.ts';
import { nodesToCome } from './node-pools.ts';
import type { NodeObject, PodObject } from './kubernetes-objects.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { parseQuantity } from './quantity.ts';

const CACHE_TTL_MS = 15_000;
const BYTES_PER_GB = 1024 ** 3;

export interface ClusterNodesDeps {
  client: KubernetesClient;
  settings: ClusterSettings;
  clock: Clock;
  onProblem: (what: string, error: unknown) => void;
}

/** Reads the nodes of this data center, and caches them. */
export function clusterNodesReader({
  client,
  settings,
  clock,
  onProblem,
}: ClusterNodesDeps): () => Promise<readonly NodeObject[]> {
  const labelSelector = Object.entries(settings.nodeSelector ?? {})
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
  return staleWhileRevalidate(
    async () => {
      try {
        const query = labelSelector === '' ? {} : { labelSelector };
        return (await listObjects(client, '/api/v1/nodes', query, selectNode)).objects;
      } catch (error) {
        throw toKubernetesError(error);
      }
    },
    CACHE_TTL_MS,
    clock,
    (error) => onProblem('the nodes of the Kubernetes cluster could not be read', error),
  );
}

/** What is read of a node: without its images and addresses. */
function selectNode({ metadata: { name, uid, labels = {} }, spec, status }: NodeObject): NodeObject {
  const { allocatable: resources = {}, conditions = [], nodeInfo: { architecture } = {} } = status;
  return {
    metadata: { name, uid, labels },
    spec: spec.unschedulable === true ? { unschedulable: true } : {},
    status: {
      allocatable: resources,
      conditions: conditions
        .filter(({ type }) => type === 'Ready')
        .map(({ type, status: is }) => ({ type, status: is })),
      ...(architecture !== undefined && { nodeInfo: { architecture } }),
    },
  };
}

/** Whether instances can be started on it. */
export function isUsable(node: NodeObject): boolean {
  return isSchedulable(node) && isReady(node);
}

function isSchedulable({ spec }: NodeObject): boolean {
  return spec.unschedulable !== true;
}

function isReady({ status }: NodeObject): boolean {
  return status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true;
}

/** An instance runs on one node, so the largest of those that take instances counts. */
export function clusterCapacity(
  nodes: readonly NodeObject[],
  pods: readonly PodObject[],
  settings: Pick<ClusterSettings, 'gpuLabel' | 'gpuResource' | 'nodePools'>,
): Capacity {
  const usable = nodes.filter(isUsable);
  const most = (resource: string): number =>
    Math.max(0, ...usable.map((node) => allocatable(node, resource)));
  const used = gpusInUse(pods, settings);
  const gpusOf = (node: NodeObject): GpuCapacity[] => {
    const gpus = gpuCapacity(node, used, settings);
    return gpus === undefined ? [] : [gpus];
  };
  const toCome = nodesToCome(usable, pods, settings);
  const cores = Math.max(Math.floor(most('cpu')), ...toCome.map(({ vcpu }) => vcpu));
  return {
    cpu: { model: usable[0]?.status.nodeInfo?.architecture ?? 'unknown', cores, threads: cores },
    memoryInGb: Math.max(
      Math.floor(most('memory') / BYTES_PER_GB),
      ...toCome.map(({ memoryInGb }) => memoryInGb),
    ),
    gpus: [...usable.flatMap(gpusOf), ...toCome.map(({ gpus }) => gpus)],
    nodes: nodes.map(
      (node): NodeCapacity => ({
        name: node.metadata.name,
        ready: isReady(node),
        schedulable: isSchedulable(node),
        cores: allocatable(node, 'cpu'),
        memoryInGb: Math.floor(allocatable(node, 'memory') / BYTES_PER_GB),
        gpus: gpusOf(node),
      }),
    ),
  };
}

function allocatable({ status }: NodeObject, resource: string): number {
  return parseQuantity(status.allocatable?.[resource] ?? '0');
}
