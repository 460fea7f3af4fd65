import type { CatalogSnapshot } from '../../domain/catalog/catalog-snapshot.ts';
import type { Catalog } from './catalog.ts';

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
