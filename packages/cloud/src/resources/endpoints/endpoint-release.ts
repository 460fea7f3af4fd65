import { isDeepStrictEqual } from 'node:util';
import type { Endpoint } from '../../domain/records.ts';
import { ENDPOINT_DEFAULTS, type EndpointInput } from '../../domain/endpoints/endpoint-defaults.ts';

/**
 * Fields that are fixed when a worker starts: changing one needs new workers. Other fields take effect on
 * running workers.
 */
const RELEASE_FIELDS = [
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
  'accelerate',
] as const satisfies readonly (keyof Endpoint)[];

/** Whether a change needs new containers and therefore creates a release. */
export function needsRelease(before: Endpoint, after: Endpoint): boolean {
  return RELEASE_FIELDS.some((field) => !isDeepStrictEqual(before[field], after[field]));
}

/** Sets the version of the endpoint after this change. */
export function withVersion(before: Endpoint, after: Endpoint): Endpoint {
  return { ...after, version: needsRelease(before, after) ? before.version + 1 : before.version };
}

/** The input that restores every release field of an earlier release. */
export function rollbackInput(released: Endpoint): EndpointInput {
  const { registryId, networkVolumeIds, ...settings } = Object.fromEntries(
    // Releases written by earlier versions of Berth do not have every field.
    RELEASE_FIELDS.map((field) => [field, released[field] ?? ENDPOINT_DEFAULTS[field]]),
  ) as Pick<Endpoint, (typeof RELEASE_FIELDS)[number]>;
  return { registryId, networkVolumeIds, settings: () => settings };
}
