import type { AuditedAction, AuditedResource } from './audit.ts';
import type { QuotaLimits } from './quotas.ts';

/** The records that Berth stores. Times are milliseconds since 1970, sizes are GB. */
export interface OwnedRecord {
  id: string;
  accountId: string;
  createdAt: number;
}

export interface Account {
  id: string;
  name: string;
  /** Public keys, one line of authorized_keys each. */
  sshKeys: string[];
  /** The limits that were set for this account; for the others the configuration counts. */
  limits: QuotaLimits;
  status: AccountStatus;
  /** The last warning of its spending: `2026-01 warning` or `2026-01 reached`. */
  spendWarned: string | null;
  createdAt: number;
}

/** A new account, apart from its name. */
export const ACCOUNT_DEFAULTS: Omit<Account, 'id' | 'name' | 'createdAt'> = {
  sshKeys: [],
  limits: {},
  status: 'active',
  spendWarned: null,
};

/** Keys of an account that is not active do not work. `deleting` is final: what it owns is being deleted. */
export type AccountStatus = 'active' | 'disabled' | 'deleting';

export const ACCESS_LEVELS = ['all', 'read-only', 'restricted'] as const;
export type AccessLevel = (typeof ACCESS_LEVELS)[number];
export const SCOPE_LEVELS = ['none', 'read', 'write'] as const;
export type ScopeLevel = (typeof SCOPE_LEVELS)[number];

/** What a restricted key may do, for each family of interfaces. */
export interface Scopes {
  rest: ScopeLevel;
  graphql: ScopeLevel;
  serverless: ScopeLevel;
}

export interface ApiKey extends OwnedRecord {
  name: string;
  /** Only the hash is kept; the key itself is shown once. */
  hash: string;
  access: AccessLevel;
  scopes: Scopes;
  /** The endpoints that a restricted key may call; null is all of them. */
  endpoints: string[] | null;
  enabled: boolean;
  /** The key that comes with the installation. */
  root: boolean;
  lastUsedAt: number | null;
  expiresAt: number | null;
}

/**
 * Signs requests for the objects of an account's network volumes. Its id is what a client sends; the secret
 * is kept sealed, since a signature needs it.
 */
export interface S3Key extends OwnedRecord {
  name: string;
  access: Exclude<AccessLevel, 'restricted'>;
  lastUsedAt: number | null;
  expiresAt: number | null;
}

export const TEMPLATE_CATEGORIES = ['NVIDIA', 'AMD', 'CPU'] as const;
export type TemplateCategory = (typeof TEMPLATE_CATEGORIES)[number];

export interface Template extends OwnedRecord {
  name: string;
  image: string;
  /** The command: shell text, or the JSON text `{"entrypoint": [], "cmd": []}`. */
  args: string;
  containerDisk: number;
  /** 0 is no volume. */
  volumeSize: number;
  volumePath: string;
  /** Entries such as `8888/http`. */
  ports: string[];
  portLabels: { port: string; name: string }[];
  env: Record<string, string>;
  registryId: string | null;
  category: TemplateCategory;
  public: boolean;
  serverless: boolean;
  readme: string;
  startSsh: boolean;
  startJupyter: boolean;
  startScript: string;
  advancedStart: boolean;
  allowedCudaVersions: string[];
  /** Opaque to Berth. */
  config: unknown;
  updatedAt: number;
}

/** What a container is made of. A template holds one, and so does whatever was made from it. */
export type Container = Pick<Template, 'image' | 'args' | 'containerDisk' | 'ports' | 'env' | 'registryId'>;

export const ENDPOINT_TYPES = ['QUEUE', 'LOAD_BALANCER'] as const;
export type EndpointType = (typeof ENDPOINT_TYPES)[number];
export const COMPUTE_TYPES = ['GPU', 'CPU'] as const;
export type ComputeType = (typeof COMPUTE_TYPES)[number];
export const SCALER_TYPES = ['QUEUE_DELAY', 'REQUEST_COUNT'] as const;
export type ScalerType = (typeof SCALER_TYPES)[number];
export const FLASHBOOT_MODES = ['OFF', 'FLASHBOOT', 'PRIORITY_FLASHBOOT'] as const;
export type FlashBoot = (typeof FLASHBOOT_MODES)[number];

export interface CpuChoice {
  /** A flavour of the catalog. */
  id: string;
  vcpuCount: number;
}

/** A serverless address and everything that says how it is served. */
export interface Endpoint extends OwnedRecord, Container {
  name: string;
  type: EndpointType;
  compute: ComputeType;
  /** The template that the container came from. */
  templateId: string | null;
  /** A change of the template reaches this endpoint, and the template cannot go while it is here. */
  templateLinked: boolean;
  /** The template was made with this endpoint, and goes with it. */
  templateBound: boolean;
  /** GPU types, the most wanted first. With no type and no pool, any GPU will do. */
  gpuTypeIds: string[];
  gpuPools: string[];
  /** GPU types that the pools are taken without. */
  excludedGpuTypes: string[];
  /** GPUs of each worker; 0 for CPU. */
  gpuCount: number;
  /** What a worker may run on where it needs no GPU, the most wanted first. */
  cpuFlavors: CpuChoice[];
  /** Empty is any. */
  allowedCudaVersions: string[];
  minCudaVersion: string | null;
  /** Empty is anywhere. */
  dataCenterIds: string[];
  /** The place as GraphQL words it: data centers and countries. Empty where it was said as data centers. */
  locations: string;
  /** At most one in each data center. */
  networkVolumeIds: string[];
  workersMin: number;
  workersMax: number;
  workersStandby: number;
  /** Seconds. */
  idleTimeout: number;
  scalerType: ScalerType;
  /** Seconds of waiting, or requests for each worker. */
  scalerValue: number;
  /** Milliseconds; 0 is no limit. */
  executionTimeout: number;
  /** Milliseconds from submission until a job is dropped, whatever its state. */
  jobTtl: number;
  /** Milliseconds for which a result is kept; null is the built-in time. */
  retention: number | null;
  /** How often a job is tried again when its worker is lost. */
  maxRetries: number;
  flashboot: FlashBoot;
  /**
   * Whether workers start with the hook that puts the fast worker channel under the public Python SDK; null
   * is the server's setting.
   */
  accelerate: boolean | null;
  modelReferences: string[];
  compliance: string[];
  /** Counts the changes that need new containers. */
  version: number;
  updatedAt: number;
}

/** The storage tiers. */
export const VOLUME_TYPES = ['STANDARD', 'HIGH_PERFORMANCE'] as const;
export type VolumeType = (typeof VOLUME_TYPES)[number];

export interface NetworkVolume extends OwnedRecord {
  name: string;
  size: number;
  dataCenterId: string;
  type: VolumeType;
}

export interface Registry extends OwnedRecord {
  name: string;
  username: string;
  password: string;
}

export interface RegistryDelegation extends OwnedRecord {
  name: string | null;
  awsUser: string;
  awsRegion: string;
  repository: string;
  tag: string;
}

/** A secret without its value: what may be shown. */
export interface Secret extends OwnedRecord {
  name: string;
  description: string | null;
  updatedAt: number;
  valueUpdatedAt: number;
}

/** Who changed what. */
export interface AuditEntry {
  at: number;
  accountId: string;
  keyId: string | null;
  interface: string;
  requestId: string;
  action: AuditedAction;
  resource: AuditedResource;
  resourceId: string;
  changes: FieldChange[];
}

export interface FieldChange {
  field: string;
  /** Left out where the value is secret. */
  from?: unknown;
  to?: unknown;
}

/** One page of a list, newest first: what comes after the last one seen. */
export interface PageRequest {
  limit: number;
  after?: { createdAt: number; id: string };
}
