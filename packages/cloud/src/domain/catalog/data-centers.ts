import type { VolumeType } from '../records.ts';
import { regions } from '../../support/config/data-centers.setting.ts';

export const REGIONS = regions;
export type Region = (typeof REGIONS)[number];

/** The standards that a data center may be said to meet. */
export const COMPLIANCE_STANDARDS = [
  'GDPR',
  'ISO_IEC_27001',
  'ISO_14001',
  'PCI_DSS',
  'HITRUST',
  'SOC_1_TYPE_2',
  'SOC_2_TYPE_2',
  'SOC_3_TYPE_2',
  'ITAR',
  'FISMA_HIGH',
  'HIPAA',
  'RENEWABLE',
] as const;

/** The tier of a volume whose owner names none; a data center lists it first. */
export const DEFAULT_NETWORK_VOLUME_TYPE: VolumeType = 'STANDARD';

/** A named place to run things, served by one engine. */
export interface DataCenterDefinition {
  id: string;
  name: string;
  region: Region;
  /** The name of the engine that serves it. */
  engine: string;
  networkVolumeTypes: readonly VolumeType[];
  compliance: readonly string[];
  /** Its pods reach those of other data centers over a private network. */
  globalNetwork: boolean;
  /** ISO 3166-1, two letters; null where it is unknown. */
  countryCode: string | null;
}

const PROCESS_ENGINE = 'process';

/**
 * Fills in what a definition leaves out. Both tiers of volumes lie on the same disks here;
 * offering both lets existing definitions run.
 */
export function defineDataCenter(
  given: Pick<DataCenterDefinition, 'id'> & Partial<DataCenterDefinition>,
): DataCenterDefinition {
  return {
    name: (given.engine ?? PROCESS_ENGINE) === PROCESS_ENGINE ? 'This machine' : given.id,
    region: 'UNKNOWN',
    engine: PROCESS_ENGINE,
    networkVolumeTypes: [DEFAULT_NETWORK_VOLUME_TYPE, 'HIGH_PERFORMANCE'],
    compliance: [],
    globalNetwork: false,
    countryCode: null,
    ...given,
  };
}

/** Appears when a Docker daemon answers, where no data center was given to Docker. */
export const DOCKER_DATA_CENTER: DataCenterDefinition = defineDataCenter({
  id: 'DOCKER-1',
  name: 'Docker on this machine',
  engine: 'docker',
});

/** Appears where a kubeconfig is set and no data center was given to Kubernetes. */
export const KUBERNETES_DATA_CENTER: DataCenterDefinition = defineDataCenter({
  id: 'K8S-1',
  name: 'Kubernetes',
  engine: 'kubernetes',
});

/** What there is without any configuration. */
export const DEFAULT_DATA_CENTERS: readonly DataCenterDefinition[] = [defineDataCenter({ id: 'LOCAL-1' })];

/** Every condition that is given must hold. */
export interface DataCenterFilter {
  /** One of these. */
  ids?: readonly string[];
  /** In one of these. */
  regions?: readonly Region[];
  /** In one of these. */
  countryCodes?: readonly string[];
  /** With all of these. */
  networkVolumeTypes?: readonly VolumeType[];
  /** With all of these. */
  compliance?: readonly string[];
  globalNetwork?: boolean;
}

/** An empty list asks for nothing. */
export function matchesDataCenter(dataCenter: DataCenterDefinition, filter: DataCenterFilter): boolean {
  return (
    isOneOf(filter.ids, dataCenter.id) &&
    isOneOf(filter.regions, dataCenter.region) &&
    isOneOf(filter.countryCodes, dataCenter.countryCode) &&
    (filter.networkVolumeTypes ?? []).every((type) => dataCenter.networkVolumeTypes.includes(type)) &&
    (filter.compliance ?? []).every((name) => dataCenter.compliance.includes(name)) &&
    (filter.globalNetwork === undefined || filter.globalNetwork === dataCenter.globalNetwork)
  );
}

function isOneOf<T>(choices: readonly T[] | undefined, value: T | null): boolean {
  if (choices === undefined || choices.length === 0) return true;
  return value !== null && choices.includes(value);
}
