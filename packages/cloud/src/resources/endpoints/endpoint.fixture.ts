import type { Endpoint } from '../../domain/records.ts';
import { CPU_FLAVORS } from '../../domain/catalog/cpu-flavors.ts';
import { defineDataCenter } from '../../domain/catalog/data-centers.ts';
import { GPU_POOLS } from '../../domain/catalog/gpu-pools.ts';
import { GPU_TYPES } from '../../domain/catalog/gpu-types.ts';
import type { CatalogSnapshot } from '../../domain/catalog/catalog-snapshot.ts';
import { ENDPOINT_DEFAULTS } from '../../domain/endpoints/endpoint-defaults.ts';

/** A valid endpoint, for tests. */
export const sampleEndpoint: Endpoint = {
  ...ENDPOINT_DEFAULTS,
  id: 'e',
  accountId: 'a',
  name: 'worker',
  image: 'python:3.12',
  createdAt: 1,
  updatedAt: 1,
};

/** A catalog with two data centers and one connected GPU type, for tests. */
export const sampleCatalogSnapshot: CatalogSnapshot = {
  gpuTypes: GPU_TYPES,
  connectedGpuTypes: ['NVIDIA GeForce RTX 4090'],
  gpuPools: GPU_POOLS,
  cpuFlavors: CPU_FLAVORS.filter(({ products }) => products.includes('SERVERLESS')),
  dataCenters: [defineDataCenter({ id: 'LOCAL-1' }), defineDataCenter({ id: 'EU-RO-1', countryCode: 'RO' })],
};
