import type { Endpoint } from '../../../api/types.ts';
import { containerDraft } from '../../../components/container-draft.ts';
import type { ContainerDraft } from '../../../components/container-draft.ts';
import { parseEnv, parsePorts } from '../../../components/env-text.ts';

export type Scaler = 'QUEUE_DELAY' | 'REQUEST_COUNT';

/** The settings of an endpoint as they are typed. Lists are text too, so that two values are easily compared. */
export interface EndpointFields extends ContainerDraft {
  name: string;
  min: string;
  max: string;
  idleTimeout: string;
  scaler: Scaler;
  /** Seconds. */
  queueDelay: string;
  requestCount: string;
  flashboot: string;
  gpuPools: string;
  excludedGpuTypes: string;
  gpuCount: string;
  /** `cpu3c × 2, cpu5c × 4`: the most wanted first. */
  cpu: string;
  dataCenters: string;
  networkVolumes: string;
  timeout: string;
  jobTtl: string;
  /** Empty: the built-in time. */
  retention: string;
  maxRetries: string;
  accelerate: boolean;
}

export const FIELD_LABELS: Record<keyof EndpointFields, string> = {
  name: 'Name',
  min: 'Workers at least',
  max: 'Workers at most',
  idleTimeout: 'Idle timeout in seconds',
  scaler: 'Add a worker',
  queueDelay: 'Seconds that a job may wait',
  requestCount: 'Requests for each worker',
  flashboot: 'Flash boot',
  gpuPools: 'GPU pools',
  excludedGpuTypes: 'GPU types left out',
  gpuCount: 'GPUs of each worker',
  cpu: 'CPU flavours',
  dataCenters: 'Data centers',
  networkVolumes: 'Network volumes',
  timeout: 'Execution timeout in seconds',
  jobTtl: 'Time to live of a job in seconds',
  retention: 'Results are kept, in seconds',
  maxRetries: 'Retries after a lost worker',
  accelerate: 'Accelerate workers',
  image: 'Image',
  args: 'Command',
  disk: 'Container disk, GB',
  env: 'Environment variables',
  ports: 'Ports',
  registry: 'Registry',
};

const DEFAULT_SCALER_VALUE = '4';
const LIST_SEPARATOR = ', ';
const CPU_SEPARATOR = ' × ';

export function splitList(text: string): string[] {
  return text.split(LIST_SEPARATOR).filter((item) => item !== '');
}

export function joinList(items: readonly string[]): string {
  return items.join(LIST_SEPARATOR);
}

export interface CpuChoice {
  id: string;
  vcpuCount: number;
}

export function splitCpu(text: string): CpuChoice[] {
  return splitList(text).map((item) => {
    const [id = '', count = ''] = item.split(CPU_SEPARATOR);
    return { id, vcpuCount: Number(count) };
  });
}

export function joinCpu(choices: readonly CpuChoice[]): string {
  return joinList(choices.map(({ id, vcpuCount }) => `${id}${CPU_SEPARATOR}${vcpuCount}`));
}

export function endpointFields(endpoint: Endpoint): EndpointFields {
  const { workers, scaling, gpu, cpu } = endpoint;
  return {
    ...containerDraft(endpoint),
    name: endpoint.name,
    min: String(workers.min),
    max: String(workers.max),
    idleTimeout: String(workers.idleTimeout ?? ''),
    scaler: scaling.type as Scaler,
    queueDelay: String(scaling['queueDelay'] ?? DEFAULT_SCALER_VALUE),
    requestCount: String(scaling['requestCount'] ?? DEFAULT_SCALER_VALUE),
    flashboot: endpoint.flashboot,
    gpuPools: joinList(gpu?.pools ?? []),
    excludedGpuTypes: joinList(gpu?.excludedTypes ?? []),
    gpuCount: String(gpu?.count ?? ''),
    cpu: joinCpu(cpu ?? []),
    dataCenters: joinList(endpoint.dataCenterIds),
    networkVolumes: joinList(endpoint.networkVolumes),
    timeout: String(endpoint.timeout / 1000),
    jobTtl: String(endpoint.jobTtl / 1000),
    retention: endpoint.retention === null ? '' : String(endpoint.retention / 1000),
    maxRetries: String(endpoint.maxRetries),
    accelerate: endpoint.accelerate,
  };
}

/** Whether workers without work are kept for a time: not where queues scale by requests. */
export function hasIdleTimeout({ type }: Pick<Endpoint, 'type'>, { scaler }: EndpointFields): boolean {
  return type !== 'QUEUE' || scaler !== 'REQUEST_COUNT';
}

export type FieldName = keyof EndpointFields & string;

/** What was typed and differs from what the endpoint has. */
export function changedFields(endpoint: Endpoint, draft: EndpointFields): FieldName[] {
  const current = endpointFields(endpoint);
  return (Object.keys(current) as FieldName[]).filter((name) => {
    if (name === 'idleTimeout' && !hasIdleTimeout(endpoint, draft)) return false;
    if (name === 'queueDelay' && draft.scaler !== 'QUEUE_DELAY') return false;
    if (name === 'requestCount' && draft.scaler !== 'REQUEST_COUNT') return false;
    if (name === 'env')
      return JSON.stringify(parseEnv(draft.env).env) !== JSON.stringify(parseEnv(current.env).env);
    if (name === 'ports')
      return JSON.stringify(parsePorts(draft.ports).ports) !== JSON.stringify(endpoint.ports);
    return draft[name] !== current[name];
  });
}

/** Members of an update. Only what differs is sent: another tab may have changed the rest. */
export function updateBody(endpoint: Endpoint, draft: EndpointFields): Record<string, unknown> {
  const changed = new Set<string>(changedFields(endpoint, draft));
  const has = (...names: FieldName[]): boolean => names.some((name) => changed.has(name));
  const workers = {
    ...(has('min') && { min: numberOf(draft.min) }),
    ...(has('max') && { max: numberOf(draft.max) }),
    ...(has('idleTimeout') && draft.idleTimeout !== '' && { idleTimeout: numberOf(draft.idleTimeout) }),
  };
  const gpu = {
    // Pools and exclusions are one selection.
    ...(has('gpuPools', 'excludedGpuTypes') && {
      pools: splitList(draft.gpuPools),
      excludedTypes: splitList(draft.excludedGpuTypes),
    }),
    ...(has('gpuCount') && { count: numberOf(draft.gpuCount) }),
  };
  return {
    ...(has('name') && { name: draft.name }),
    ...(has('image') && { image: draft.image.trim() }),
    ...(has('args') && { args: draft.args }),
    ...(has('disk') && { disk: numberOf(draft.disk) }),
    ...(has('env') && { env: parseEnv(draft.env).env }),
    ...(has('ports') && { ports: parsePorts(draft.ports).ports }),
    ...(has('registry') && { registry: draft.registry === '' ? null : draft.registry }),
    ...(Object.keys(workers).length > 0 && { workers }),
    ...(has('scaler', 'queueDelay', 'requestCount') && { scaling: scalingBody(draft) }),
    ...(has('flashboot') && { flashboot: draft.flashboot }),
    ...(Object.keys(gpu).length > 0 && { gpu }),
    ...(has('cpu') && { cpu: splitCpu(draft.cpu) }),
    ...(has('dataCenters') && { dataCenterIds: splitList(draft.dataCenters) }),
    ...(has('networkVolumes') && { networkVolumes: splitList(draft.networkVolumes) }),
    ...(has('timeout') && { timeout: millisecondsOf(draft.timeout) }),
    ...(has('jobTtl') && { jobTtl: millisecondsOf(draft.jobTtl) }),
    ...(has('retention') && {
      retention: draft.retention.trim() === '' ? null : millisecondsOf(draft.retention),
    }),
    ...(has('maxRetries') && { maxRetries: numberOf(draft.maxRetries) }),
    ...(has('accelerate') && { accelerate: draft.accelerate }),
  };
}

function scalingBody({ scaler, queueDelay, requestCount }: EndpointFields): Record<string, unknown> {
  return scaler === 'QUEUE_DELAY'
    ? { type: scaler, queueDelay: numberOf(queueDelay) }
    : { type: scaler, requestCount: numberOf(requestCount) };
}

/** What is no number becomes null, and the server says what it wants there. */
function numberOf(text: string): number | null {
  const number = text.trim() === '' ? Number.NaN : Number(text);
  return Number.isFinite(number) ? number : null;
}

function millisecondsOf(seconds: string): number | null {
  const number = numberOf(seconds);
  return number === null ? null : Math.round(number * 1000);
}

/** Fixed when a worker starts: a change needs new workers. */
const OF_A_RELEASE: ReadonlySet<FieldName> = new Set<FieldName>([
  'image',
  'args',
  'disk',
  'env',
  'ports',
  'registry',
  'gpuPools',
  'excludedGpuTypes',
  'gpuCount',
  'cpu',
  'dataCenters',
  'networkVolumes',
  'accelerate',
]);

export function makesRelease(changed: readonly FieldName[]): boolean {
  return changed.some((name) => OF_A_RELEASE.has(name));
}

export interface FieldChange {
  label: string;
  from: string;
  to: string;
}

/** Each change as it is shown before it is saved. Of environment variables, the names. */
export function describeChanges(
  endpoint: Endpoint,
  draft: EndpointFields,
  volumeName: (id: string) => string = (id) => id,
): FieldChange[] {
  const current = endpointFields(endpoint);
  const text = (name: FieldName, value: string | boolean): string => {
    if (typeof value === 'boolean') return value ? 'on' : 'off';
    if (name === 'dataCenters' && value === '') return 'anywhere';
    if (name === 'timeout' && value === '0') return 'no limit';
    if (name === 'retention' && value === '') return 'the built-in time';
    if (name === 'networkVolumes' && value !== '') return joinList(splitList(value).map(volumeName));
    if (name === 'scaler') return SCALER_WORDS[value as Scaler];
    return value === '' ? 'none' : value;
  };
  return changedFields(endpoint, draft).map((name) =>
    name === 'env'
      ? { label: FIELD_LABELS.env, ...envChange(parseEnv(current.env).env, parseEnv(draft.env).env) }
      : { label: FIELD_LABELS[name], from: text(name, current[name]), to: text(name, draft[name]) },
  );
}

export const SCALER_WORDS: Record<Scaler, string> = {
  QUEUE_DELAY: 'by how long jobs wait',
  REQUEST_COUNT: 'by how many requests there are',
};

/** Names alone: values may be secret. */
function envChange(
  before: Record<string, string>,
  after: Record<string, string>,
): Pick<FieldChange, 'from' | 'to'> {
  const names = (env: Record<string, string>): string => joinList(Object.keys(env)) || 'none';
  const changed = Object.keys(after).filter((name) => name in before && before[name] !== after[name]);
  return {
    from: names(before),
    to: names(after) + (changed.length > 0 ? ` (new value: ${joinList(changed)})` : ''),
  };
}
