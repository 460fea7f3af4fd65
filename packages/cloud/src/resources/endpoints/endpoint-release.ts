import { isDeepStrictEqual } from 'node:util';
import type { Endpoint } from '../../domain/records.ts';
import { ENDPOINT_DEFAULTS, type EndpointInput } from '../../domain/endpoints/endpoint-defaults.ts';

/** What is built into a running worker. The rest takes effect on the workers that are there. */
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

/** Whether a change needs new containers: then it is a release of its own. */
export function needsRelease(before: Endpoint, after: Endpoint): boolean {
  return RELEASE_FIELDS.some((field) => !isDeepStrictEqual(before[field], after[field]));
}

/** The endpoint with the version that it has after this change. */
export function withVersion(before: Endpoint, after: Endpoint): Endpoint {
  return { ...after, version: needsRelease(before, after) ? before.version + 1 : before.version };
}

/** Asks for all that was built into the workers of an earlier release. */
export function rollbackInput(released: Endpoint): EndpointInput {
  const { registryId, networkVolumeIds, ...settings } = Object.fromEntries(
    // Releases of earlier versions of Berth do not have every field.
    RELEASE_FIELDS.map((field) => [field, released[field] ?? ENDPOINT_DEFAULTS[field]]),
  ) as Pick<Endpoint, (typeof RELEASE_FIELDS)[number]>;
  return { registryId, networkVolumeIds, settings: () => settings };
}
