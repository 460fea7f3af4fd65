import { kubernetesFields, type KubernetesFields } from './kubernetes-fields.setting.ts';
import { areDistinct, isMapping, type SettingType } from './setting-type.ts';

/** The parts of the world that REST v2 names for a data center. */
export const regions = [
  'NORTH_AMERICA',
  'SOUTH_AMERICA',
  'EUROPE',
  'ASIA',
  'MIDDLE_EAST',
  'AFRICA',
  'OCEANIA',
  'ANTARCTICA',
  'UNKNOWN',
] as const;

const engineNames = ['process', 'docker', 'kubernetes'] as const;

export interface DataCenterConfig extends KubernetesFields {
  id: string;
  name?: string;
  region?: (typeof regions)[number];
  engine?: (typeof engineNames)[number];
  /** How containers are confined, on the engines docker and kubernetes. */
  runtime?: string;
  requireUserNamespaces?: boolean;
  capabilities?: string[];
  pids?: number;
}

/** The name of an OCI runtime, such as runsc. */
const RUNTIME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** A Linux capability as Docker names it, such as SYS_PTRACE. */
const CAPABILITY = /^[A-Z][A-Z_]{1,40}$/;

/** Letters, digits and dashes: an id stands in paths and host names. */
const ID = /^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/;

const fields: Record<keyof DataCenterConfig, (value: unknown) => boolean> = {
  id: (value) => typeof value === 'string' && ID.test(value),
  name: (value) => typeof value === 'string' && value !== '',
  region: (value) => regions.some((region) => region === value),
  engine: (value) => engineNames.some((engine) => engine === value),
  runtime: (value) => typeof value === 'string' && RUNTIME.test(value),
  requireUserNamespaces: (value) => typeof value === 'boolean',
  // All of them would be no confinement: each is granted by its name.
  capabilities: (value) =>
    Array.isArray(value) &&
    value.every((name) => typeof name === 'string' && CAPABILITY.test(name) && name !== 'ALL'),
  pids: (value) => Number.isInteger(value) && Number(value) >= 1,
  ...kubernetesFields,
};

function isDataCenter(value: unknown): value is DataCenterConfig {
  if (!isMapping(value) || !('id' in value)) return false;
  return Object.entries(value).every(
    ([field, content]) =>
      Object.hasOwn(fields, field) &&
      fields[field as keyof DataCenterConfig](content) &&
      (value['engine'] === 'kubernetes' || !Object.hasOwn(kubernetesFields, field)),
  );
}

/** A list of data centers in the file, of which an id alone is the short form; a list of ids in text. */
export function dataCenterListType(): SettingType<DataCenterConfig[]> {
  const asList = (values: unknown[]): DataCenterConfig[] | undefined => {
    const centers = values.map((value) => (typeof value === 'string' ? { id: value.trim() } : value));
    return centers.length > 0 &&
      centers.every(isDataCenter) &&
      areDistinct(centers.map((center) => center.id))
      ? centers
      : undefined;
  };
  return {
    allowed:
      'ids of letters, digits and dashes, each once; in the file also entries of id, name, ' +
      `region (${regions.join(', ')}) and engine (${engineNames.join(', ')}); with the engine docker also ` +
      'runtime, requireUserNamespaces, capabilities and pids; with the engine kubernetes those of docs/kubernetes.md',
    fromText: (value) => asList(value.split(',')),
    fromFile: (value) =>
      typeof value === 'string' ? asList(value.split(',')) : Array.isArray(value) ? asList(value) : undefined,
    toYaml: (value) => JSON.stringify(value),
  };
}
