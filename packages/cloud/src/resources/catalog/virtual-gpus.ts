import { ruleError } from '../../support/errors.ts';
import { findGpuType, type GpuType } from '../../domain/catalog/gpu-types.ts';
import type { GpuCapacity } from '../../domain/placement/engine-capacity.ts';

/** The virtual GPUs of a machine without a real one: none (auto, none), common types, or the given types. */
export type VirtualGpuSetting = 'auto' | 'none' | 'virtual' | readonly string[];

const COMMON_GPU_TYPES: readonly string[] = [
  'NVIDIA GeForce RTX 4090',
  'NVIDIA A100 80GB PCIe',
  'NVIDIA H100 80GB HBM3',
];
const DEFAULT_COUNT = 2;
/** For example `8x NVIDIA A40`. */
const COUNTED_TYPE_PATTERN = /^([1-9]\d{0,3})x (.+)$/;

/** GPUs without hardware, so that definitions that need a GPU can be tried on any machine. */
export function virtualGpus(setting: VirtualGpuSetting): GpuCapacity[] {
  if (setting === 'none' || setting === 'auto') return [];
  const ids = setting === 'virtual' ? COMMON_GPU_TYPES : setting;
  const counts = new Map<GpuType, number>();
  for (const id of ids) {
    const [, count = DEFAULT_COUNT, name = id] = COUNTED_TYPE_PATTERN.exec(id) ?? [];
    counts.set(knownType(name), Number(count));
  }
  return [...counts].map(([{ id, memoryInGb }, count]) => ({
    gpuTypeId: id,
    total: count,
    free: count,
    virtual: true,
    cudaVersion: null,
    memoryInGb,
  }));
}

function knownType(id: string): GpuType {
  const type = findGpuType(id);
  if (type !== undefined) return type;
  throw ruleError(
    `gpus: there is no GPU type ${JSON.stringify(id)}; name types by the ids of the catalog, such as ` +
      `${JSON.stringify(COMMON_GPU_TYPES[0])}, or write virtual, auto or none`,
  );
}
