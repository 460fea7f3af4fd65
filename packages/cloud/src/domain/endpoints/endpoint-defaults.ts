import type { Endpoint, OwnedRecord } from '../records.ts';
import { ANY_GPU } from '../catalog/gpu-selection.ts';
import type { TemplateFields } from '../templates/template-defaults.ts';

/** What a person may set, apart from what refers to other things of the account. */
export type EndpointSettings = Omit<
  Endpoint,
  | keyof OwnedRecord
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

/** A new endpoint, or a change of one. What is left out stays as it is. */
export interface EndpointInput {
  template?: TemplateUse;
  registryId?: string | null;
  networkVolumeIds?: readonly string[];
  /** The release that all of this was: what it refers to may have been deleted since. */
  rollbackVersion?: number;
  /**
   * `base` is the endpoint so far: the defaults or the present one, with the template already applied. May be
   * asked more than once.
   */
  settings(base: Endpoint): Partial<EndpointSettings>;
}

/** The defaults of an endpoint. Where an interface differs, it has defaults of its own. */
export const ENDPOINT_DEFAULTS: Omit<Endpoint, keyof OwnedRecord | 'updatedAt'> = {
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
  accelerate: null,
  modelReferences: [],
  compliance: [],
  version: 0,
};

/** Where REST v2 fills in something else than the older interfaces. */
export const V2_ENDPOINT_DEFAULTS = { idleTimeout: 10, executionTimeout: 300_000 } as const;

/** Where a worker of a load balancing endpoint reports its health. */
export function healthCheckPath(env: Readonly<Record<string, string>>): string {
  return env['HEALTH_CHECK_PATH'] ?? '/ping';
}
