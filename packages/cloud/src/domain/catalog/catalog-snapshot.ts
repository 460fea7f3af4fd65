import type { Catalog } from '../../resources/catalog/catalog.ts';
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

export async function readCatalogSnapshot(catalog: Catalog): Promise<CatalogSnapshot> {
  const gpus = await catalog.gpus();
  const cpus = await catalog.cpus();
  return {
    gpuTypes: gpus.map(({ type }) => type),
    connectedGpuTypes: gpus.filter(({ maxCount }) => maxCount > 0).map(({ type }) => type.id),
    gpuPools: catalog.pools(),
    cpuFlavors: cpus.map(({ flavor }) => flavor).filter(({ products }) => products.includes('SERVERLESS')),
    dataCenters: catalog.dataCenters(),
  };
}

/** "gpuTypeIds: … does not exist here; available: …" */
export function unknownValueMessage(field: string, value: string, available: readonly string[]): string {
  return `${field} ${JSON.stringify(value.slice(0, 64))} does not exist here; available: ${available.join(', ') || 'none'}`;
}
