import { GPU_TYPES } from './gpu-types.ts';

/** GPU types of one class, for endpoints that take whichever is free. */
export interface GpuPool {
  id: string;
  /** What people call it: the memory, and PRO for the faster ones of that size. */
  label: string;
  gpuTypeIds: readonly string[];
}

/** From the smallest to the largest. */
export const GPU_POOLS: readonly GpuPool[] = [
  pool('AMPERE_16', '16 GB'),
  pool('AMPERE_24', '24 GB'),
  pool('ADA_24', '24 GB PRO'),
  pool('ADA_32_PRO', '32 GB PRO'),
  pool('AMPERE_48', '48 GB'),
  pool('ADA_48_PRO', '48 GB PRO'),
  pool('AMPERE_80', '80 GB'),
  pool('ADA_80_PRO', '80 GB PRO'),
  pool('BLACKWELL_96', '96 GB'),
  pool('HOPPER_141', '141 GB'),
  pool('BLACKWELL_180', '180 GB'),
];

export function findGpuPool(id: string): GpuPool | undefined {
  return GPU_POOLS.find((known) => known.id === id);
}

/** A type names its pool, so a pool's types are counted and never listed a second time. */
function pool(id: string, label: string): GpuPool {
  return { id, label, gpuTypeIds: GPU_TYPES.filter((type) => type.pool === id).map((type) => type.id) };
}
