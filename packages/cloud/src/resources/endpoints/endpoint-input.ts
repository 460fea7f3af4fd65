import { isDeepStrictEqual } from 'node:util';
import type { Endpoint } from '../../domain/records.ts';
import type { EndpointReferences } from '../../store/store.ts';
import { BerthError } from '../../support/errors.ts';
import { checkRegistryExists } from '../registries/registry-references.ts';
import { anyCpuFlavor, cpuFindings } from '../../domain/catalog/cpu-selection.ts';
import { ANY_GPU, gpuFindings, normalizeGpuIds } from '../../domain/catalog/gpu-selection.ts';
import type { GpuSelection } from '../../domain/catalog/gpu-selection.ts';
import type { CatalogSnapshot } from '../../domain/catalog/catalog-snapshot.ts';
import { dataCenterFindings, volumeFindings } from '../../domain/endpoints/endpoint-locations.ts';
import { endpointFindings } from '../../domain/endpoints/endpoint-rules.ts';
import type { EndpointInput } from '../../domain/endpoints/endpoint-defaults.ts';

/**
 * Applies the input to `base`; throws with every violated rule. `before` is the current endpoint, or
 * undefined when one is created.
 */
export function applyEndpointInput(
  input: EndpointInput,
  base: Endpoint,
  before: Endpoint | undefined,
  catalog: CatalogSnapshot,
  references: EndpointReferences,
): Endpoint {
  const registryId = registryOf(input, references);
  const wanted: Endpoint = {
    ...base,
    ...input.settings(base),
    ...(registryId !== undefined && { registryId }),
    ...(input.networkVolumeIds !== undefined && { networkVolumeIds: [...new Set(input.networkVolumeIds)] }),
  };
  const endpoint = withOneComputeType(wanted);
  const findings = [
    ...endpointFindings(endpoint),
    ...immutableFieldFindings(endpoint, before),
    ...referenceFindings(endpoint, before, catalog, references, input.rollbackVersion),
  ];
  if (findings.length > 0) throw new BerthError('rule', findings.join('; '), { details: findings });
  return endpoint;
}

/** On a rollback, a registry that was deleted since that release is left out. */
function registryOf(
  { registryId, rollbackVersion }: EndpointInput,
  { registryIds }: EndpointReferences,
): string | null | undefined {
  if (rollbackVersion !== undefined && typeof registryId === 'string')
    return registryIds.includes(registryId) ? registryId : null;
  checkRegistryExists(registryId, registryIds);
  return registryId;
}

/** An endpoint runs on GPUs or on CPUs; settings of the other kind are dropped. */
function withOneComputeType(endpoint: Endpoint): Endpoint {
  if (endpoint.compute === 'GPU') return { ...endpoint, ...normalizeGpuIds(endpoint), cpuFlavors: [] };
  const cpuFlavors = endpoint.cpuFlavors.length === 0 ? anyCpuFlavor() : endpoint.cpuFlavors;
  return { ...endpoint, ...ANY_GPU, gpuCount: 0, allowedCudaVersions: [], minCudaVersion: null, cpuFlavors };
}

function immutableFieldFindings(endpoint: Endpoint, before: Endpoint | undefined): string[] {
  if (before === undefined) return [];
  return (['type', 'compute'] as const)
    .filter((field) => endpoint[field] !== before[field])
    .map((field) => `${field} is fixed when an endpoint is created: this one is ${before[field]}`);
}

/**
 * Only changed fields are checked against the catalog: an endpoint in a data center that was removed can
 * still be renamed.
 */
function referenceFindings(
  endpoint: Endpoint,
  before: Endpoint | undefined,
  catalog: CatalogSnapshot,
  { volumes }: EndpointReferences,
  rollbackVersion: number | undefined,
): string[] {
  const changed = (...fields: (keyof Endpoint)[]): boolean =>
    before === undefined || fields.some((field) => !isDeepStrictEqual(endpoint[field], before[field]));
  const selection: GpuSelection = endpoint;
  return [
    ...(endpoint.compute === 'GPU' && changed('gpuTypeIds', 'gpuPools', 'excludedGpuTypes')
      ? gpuFindings(selection, catalog)
      : []),
    ...(endpoint.compute === 'CPU' && changed('cpuFlavors') ? cpuFindings(endpoint.cpuFlavors, catalog) : []),
    ...(changed('dataCenterIds') ? dataCenterFindings(endpoint.dataCenterIds, catalog) : []),
    ...(changed('networkVolumeIds', 'dataCenterIds')
      ? volumeFindings(endpoint, volumes, rollbackVersion)
      : []),
  ];
}
