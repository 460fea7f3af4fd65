import { isDeepStrictEqual } from 'node:util';
import type { Endpoint } from '../../store/records.ts';
import type { EndpointOrder } from './order.ts';

/** What is built into a running worker. The rest takes effect on the workers that are there. */
const BUILT_IN = [
  'image',
  'args',
  'containerDisk',
  'ports',
  'env',
  'registryId',
  'gpuTypeIds',
  'gpuPools',
  'excludedGpuTypes',
  'gpuCount',
  'cpuFlavors',
  'allowedCudaVersions',
  'minCudaVersion',
  'dataCenterIds',
  'networkVolumeIds',
  'modelReferences',
  'compliance',
] as const satisfies readonly (keyof Endpoint)[];

/** Whether a change needs new containers: then it is a release of its own. */
export function needsRelease(before: Endpoint, after: Endpoint): boolean {
  return BUILT_IN.some((field) => !isDeepStrictEqual(before[field], after[field]));
}

/** The endpoint with the version that it has after this change. */
export function withVersion(before: Endpoint, after: Endpoint): Endpoint {
  return { ...after, version: needsRelease(before, after) ? before.version + 1 : before.version };
}

/** Asks for all that was built into the workers of an earlier release. */
export function backTo(released: Endpoint): EndpointOrder {
  const { registryId, networkVolumeIds, ...settings } = Object.fromEntries(
    BUILT_IN.map((field) => [field, released[field]]),
  ) as Pick<Endpoint, (typeof BUILT_IN)[number]>;
  return { registryId, networkVolumeIds, settings: () => settings };
}
