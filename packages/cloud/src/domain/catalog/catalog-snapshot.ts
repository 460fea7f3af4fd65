import type { CpuFlavor } from './cpu-flavors.ts';
import type { DataCenterDefinition } from './data-centers.ts';
import type { GpuPool } from './gpu-pools.ts';
import type { GpuType } from './gpu-types.ts';

/** What an endpoint may name, as the catalog has it now. */
export interface CatalogSnapshot {
  gpuTypes: readonly GpuType[];
  /** The ids of those that machines really have. */
  connectedGpuTypes: readonly string[];
  gpuPools: readonly GpuPool[];
  /** Those that run workers. */
  cpuFlavors: readonly CpuFlavor[];
  dataCenters: readonly DataCenterDefinition[];
}

/** "gpuTypeIds: … does not exist here; available: …" */
export function unknownValueMessage(field: string, value: string, available: readonly string[]): string {
  return (
    `${field} ${JSON.stringify(value.slice(0, 64))} does not exist here; available: ` +
    `${available.join(', ') || 'none'}`
  );
}
