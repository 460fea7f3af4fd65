import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';
import { GPU_TYPES } from '../../domain/catalog/gpu-types.ts';
import type { NodeObject, PodObject } from './kubernetes-objects.ts';
import type { ClusterSettings } from './kubernetes-options.ts';
import { parseQuantity } from './quantity.ts';

const MIB_PER_GB = 1024;

type GpuSettings = Pick<ClusterSettings, 'gpuLabel' | 'gpuResource'>;

/** Few, and asked for again with each placement for each of a thousand nodes. */
const knownTypes = new Map<string, string>();

/** GPU-feature-discovery writes the driver's name with dashes: NVIDIA-L4, NVIDIA-A100-SXM4-80GB. */
export function gpuTypeOf(product: string): string {
  const known = knownTypes.get(product);
  if (known !== undefined) return known;
  const name = product.replace(/-SHARED$/, '');
  const type = GPU_TYPES.find(({ id }) => isSameGpu(id, name))?.id ?? name.replaceAll('-', ' ');
  knownTypes.set(product, type);
  return type;
}

/** The products of the nodes' labels that a GPU type stands for. */
export function productsOf(typeId: string, nodes: readonly NodeObject[], label: string): string[] {
  const products = nodes.flatMap(({ metadata }) => metadata.labels?.[label] ?? []);
  return [...new Set(products)].filter((product) => isSameGpu(gpuTypeOf(product), typeId)).sort();
}

function isSameGpu(one: string, other: string): boolean {
  const plain = (name: string): string => name.toLowerCase().replaceAll(/[^a-z0-9]/g, '');
  return plain(one) === plain(other);
}

/**
 * Only nodes with this GPU. A name that no node has yet is asked for as GPU-feature-discovery would write it.
 */
export function gpuAffinity(label: string, products: readonly string[]): Record<string, unknown> {
  return {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: label, operator: 'In', values: [...products] }] }],
      },
    },
  };
}

export function productName(typeId: string): string {
  return typeId.replaceAll(' ', '-');
}

/** The GPUs of one node; undefined where it has none. */
export function gpuCapacity(
  { metadata, status }: NodeObject,
  used: ReadonlyMap<string, number>,
  { gpuLabel, gpuResource }: GpuSettings,
): GpuCapacity | undefined {
  const total = parseQuantity(status.allocatable?.[gpuResource] ?? '0');
  const product = metadata.labels?.[gpuLabel];
  if (total < 1 || product === undefined) return undefined;
  const driver = metadata.labels ?? {};
  const major = driver['nvidia.com/cuda.runtime.major'] ?? driver['nvidia.com/cuda.runtime-version.major'];
  const minor = driver['nvidia.com/cuda.runtime.minor'] ?? driver['nvidia.com/cuda.runtime-version.minor'];
  return {
    gpuTypeId: gpuTypeOf(product),
    total,
    free: Math.max(0, total - (used.get(metadata.name) ?? 0)),
    virtual: false,
    cudaVersion: major === undefined ? null : `${major}.${minor ?? '0'}`,
    memoryInGb: Math.round(Number(driver['nvidia.com/gpu.memory'] ?? 0) / MIB_PER_GB),
  };
}

/** How many GPUs these pods hold, by node. */
export function gpusInUse(
  pods: readonly PodObject[],
  { gpuResource }: Pick<GpuSettings, 'gpuResource'>,
): Map<string, number> {
  const used = new Map<string, number>();
  for (const { nodeName, containers } of pods.map(({ spec }) => spec)) {
    if (nodeName === undefined) continue;
    const requested = containers.reduce(
      (sum, { resources }) => sum + parseQuantity(resources?.requests?.[gpuResource] ?? '0'),
      0,
    );
    if (requested > 0) used.set(nodeName, (used.get(nodeName) ?? 0) + requested);
  }
  return used;
}
