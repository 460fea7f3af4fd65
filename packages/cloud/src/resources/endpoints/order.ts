import { isDeepStrictEqual } from 'node:util';
import type { Endpoint, Owned } from '../../store/records.ts';
import type { Footing } from '../../store/store.ts';
import { BerthError } from '../../support/errors.ts';
import { checkRegistry } from '../registries/reference.ts';
import type { TemplateFields } from '../templates/templates.ts';
import { anyCpu, cpuFindings } from './cpu-selection.ts';
import { ANY_GPU, gpuFindings, withKnownSpellings } from './gpu-selection.ts';
import type { GpuSelection } from './gpu-selection.ts';
import type { Offer } from './offer.ts';
import { dataCenterFindings, volumeFindings } from './placement.ts';
import { endpointFindings } from './rules.ts';

/** What a person may set, apart from what refers to other things of the account. */
export type EndpointSettings = Omit<
  Endpoint,
  | keyof Owned
  | 'updatedAt'
  | 'version'
  | 'templateId'
  | 'templateLinked'
  | 'templateBound'
  | 'registryId'
  | 'networkVolumeIds'
>;

/**
 * How a template is used: `link` keeps the endpoint following its changes, as the older
 * interfaces do; `copy` takes the container once, as REST v2 does; `own` makes a template
 * that belongs to this endpoint alone.
 */
export type TemplateUse =
  | { as: 'link' | 'copy'; id: string }
  | { as: 'own'; fields: Partial<TemplateFields> };

/** What someone asks of an endpoint, new or present. What is not said stays as it is. */
export interface EndpointOrder {
  template?: TemplateUse;
  registryId?: string | null;
  networkVolumeIds?: readonly string[];
  /** The release that all of this was: what it refers to may have been deleted since. */
  rollBackTo?: number;
  /** `base` is the endpoint so far: the defaults or the present one, with the template already applied. May be asked more than once. */
  settings(base: Endpoint): Partial<EndpointSettings>;
}

/** What an endpoint is where nothing is said. The interfaces differ in some of these and say so themselves. */
export const DEFAULTS: Omit<Endpoint, keyof Owned | 'updatedAt'> = {
  name: '',
  type: 'QUEUE',
  compute: 'GPU',
  image: '',
  args: '',
  containerDisk: 20,
  ports: [],
  env: {},
  registryId: null,
  templateId: null,
  templateLinked: false,
  templateBound: false,
  ...ANY_GPU,
  gpuCount: 1,
  cpuFlavors: [],
  allowedCudaVersions: [],
  minCudaVersion: null,
  dataCenterIds: [],
  locations: '',
  networkVolumeIds: [],
  workersMin: 0,
  workersMax: 3,
  workersStandby: 0,
  idleTimeout: 5,
  scalerType: 'QUEUE_DELAY',
  scalerValue: 4,
  executionTimeout: 600_000,
  jobTtl: 86_400_000,
  retention: null,
  maxRetries: 1,
  flashboot: 'OFF',
  modelReferences: [],
  compliance: [],
  version: 0,
};

/** The endpoint that an order makes of `base`, or the reasons why not. `before` is the present one, if there is one. */
export function carryOut(
  order: EndpointOrder,
  base: Endpoint,
  before: Endpoint | undefined,
  offer: Offer,
  footing: Footing,
): Endpoint {
  const registryId = registryOf(order, footing);
  const wanted: Endpoint = {
    ...base,
    ...order.settings(base),
    ...(registryId !== undefined && { registryId }),
    ...(order.networkVolumeIds !== undefined && { networkVolumeIds: [...new Set(order.networkVolumeIds)] }),
  };
  const endpoint = ofOneFamily(wanted);
  const findings = [
    ...endpointFindings(endpoint),
    ...fixedFindings(endpoint, before),
    ...referenceFindings(endpoint, before, offer, footing, order.rollBackTo),
  ];
  if (findings.length > 0) throw new BerthError('rule', findings.join('; '), { details: findings });
  return endpoint;
}

/** A registry that a release had and that is gone is left out, as its deletion left it out of endpoints. */
function registryOf(
  { registryId, rollBackTo }: EndpointOrder,
  { registryIds }: Footing,
): string | null | undefined {
  if (rollBackTo !== undefined && typeof registryId === 'string')
    return registryIds.includes(registryId) ? registryId : null;
  checkRegistry(registryId, registryIds);
  return registryId;
}

/** An endpoint runs on GPUs or on CPUs; what is said about the other is not kept. */
function ofOneFamily(endpoint: Endpoint): Endpoint {
  if (endpoint.compute === 'GPU') return { ...endpoint, ...withKnownSpellings(endpoint), cpuFlavors: [] };
  const cpuFlavors = endpoint.cpuFlavors.length === 0 ? anyCpu() : endpoint.cpuFlavors;
  return { ...endpoint, ...ANY_GPU, gpuCount: 0, allowedCudaVersions: [], minCudaVersion: null, cpuFlavors };
}

function fixedFindings(endpoint: Endpoint, before: Endpoint | undefined): string[] {
  if (before === undefined) return [];
  return (['type', 'compute'] as const)
    .filter((field) => endpoint[field] !== before[field])
    .map((field) => `${field} is fixed when an endpoint is made: this one is ${before[field]}`);
}

/** Only what changes is held against the catalog: a place that has gone from it does not stand in the way of a new name. */
function referenceFindings(
  endpoint: Endpoint,
  before: Endpoint | undefined,
  offer: Offer,
  { volumes }: Footing,
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
