import type { Endpoint } from '../../store/records.ts';
import { CPU_FLAVORS } from '../catalog/cpu-flavors.ts';
import { defineDataCenter } from '../catalog/data-centers.ts';
import { GPU_POOLS } from '../catalog/gpu-pools.ts';
import { GPU_TYPES } from '../catalog/gpu-types.ts';
import type { Offer } from './offer.ts';
import { DEFAULTS } from './order.ts';

/** An endpoint that keeps every rule, for tests. */
export const sampleEndpoint: Endpoint = {
  ...DEFAULTS,
  id: 'e',
  accountId: 'a',
  name: 'worker',
  image: 'python:3.12',
  createdAt: 1,
  updatedAt: 1,
};

/** A catalog with two data centers and one connected GPU type, for tests. */
export const sampleOffer: Offer = {
  gpuTypes: GPU_TYPES,
  connectedGpuTypes: ['NVIDIA GeForce RTX 4090'],
  gpuPools: GPU_POOLS,
  cpuFlavors: CPU_FLAVORS.filter(({ products }) => products.includes('SERVERLESS')),
  dataCenters: [defineDataCenter({ id: 'LOCAL-1' }), defineDataCenter({ id: 'EU-RO-1', countryCode: 'RO' })],
};
