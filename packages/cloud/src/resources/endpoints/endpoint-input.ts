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

/** The endpoint that an order makes of `base`, or the reasons why not. `before` is the present one, if there is one. */
export function applyEndpointInput(
  order: EndpointInput,
  base: Endpoint,
  before: Endpoint | undefined,
  offer: CatalogSnapshot,
  footing: EndpointReferences,
): Endpoint {
  const registryId = registryOf(order, footing);
  const wanted: Endpoint = {
    ...base,
    ...order.settings(base),
    ...(registryId !== undefined && { registryId }),
    ...(order.networkVolumeIds !== undefined && { networkVolumeIds: [...new Set(order.networkVolumeIds)] }),
  };
  const endpoint = withOneComputeType(wanted);
  const findings = [
    ...endpointFindings(endpoint),
    ...immutableFieldFindings(endpoint, before),
    ...referenceFindings(endpoint, before, offer, footing, order.rollbackVersion),
  ];
  if (findings.length > 0) throw new BerthError('rule', findings.join('; '), { details: findings });
  return endpoint;
}

/** A registry that a release had and that is gone is left out, as its deletion left it out of endpoints. */
function registryOf(
  { registryId, rollbackVersion }: EndpointInput,
  { registryIds }: EndpointReferences,
): string | null | undefined {
  if (rollbackVersion !== undefined && typeof registryId === 'string')
    return registryIds.includes(registryId) ? registryId : null;
  checkRegistryExists(registryId, registryIds);
  return registryId;
}

/** An endpoint runs on GPUs or on CPUs; what is said about the other is not kept. */
function withOneComputeType(endpoint: Endpoint): Endpoint {
  if (endpoint.compute === 'GPU') return { ...endpoint, ...normalizeGpuIds(endpoint), cpuFlavors: [] };
  const cpuFlavors = endpoint.cpuFlavors.length === 0 ? anyCpuFlavor() : endpoint.cpuFlavors;
  return { ...endpoint, ...ANY_GPU, gpuCount: 0, allowedCudaVersions: [], minCudaVersion: null, cpuFlavors };
}

function immutableFieldFindings(endpoint: Endpoint, before: Endpoint | undefined): string[] {
  if (before === undefined) return [];
  return (['type', 'compute'] as const)
    .filter((field) => endpoint[field] !== before[field])
    .map((field) => `${field} is fixed when an endpoint is made: this one is ${before[field]}`);
}

/** Only what changes is held against the catalog: a place that has gone from it does not stand in the way of a new name. */
function referenceFindings(
  endpoint: Endpoint,
  before: Endpoint | undefined,
  offer: CatalogSnapshot,
  { volumes }: EndpointReferences,
  rollBackTo: number | undefined,
): string[] {
  const changed = (...fields: (keyof Endpoint)[]): boolean =>
    before === undefined || fields.some((field) => !isDeepStrictEqual(endpoint[field], before[field]));
  const selection: GpuSelection = endpoint;
  return [
    ...(endpoint.compute === 'GPU' && changed('gpuTypeIds', 'gpuPools', 'excludedGpuTypes')
      ? gpuFindings(selection, offer)
      : []),
    ...(endpoint.compute === 'CPU' && changed('cpuFlavors') ? cpuFindings(endpoint.cpuFlavors, offer) : []),
    ...(changed('dataCenterIds') ? dataCenterFindings(endpoint.dataCenterIds, offer) : []),
    ...(changed('networkVolumeIds', 'dataCenterIds') ? volumeFindings(endpoint, volumes, rollBackTo) : []),
  ];
}
