import { foreignImageReason } from '../images/local-image-names.ts';
import type { Endpoint } from '../records.ts';
import { containerFindings, cudaVersionFindings, nameFindings } from '../templates/template-rules.ts';

export interface Bounds {
  minimum: number;
  maximum: number;
}

const DAY_MS = 86_400_000;

/** Seconds. */
export const IDLE_TIMEOUT: Bounds = { minimum: 1, maximum: 3600 };
/** Milliseconds; besides, 0 is no limit. */
export const ENDPOINT_EXECUTION_TIMEOUT: Bounds = { minimum: 5000, maximum: 7 * DAY_MS };
export const ENDPOINT_JOB_TTL: Bounds = { minimum: 10_000, maximum: 7 * DAY_MS };
export const ENDPOINT_RETENTION: Bounds = { minimum: 1000, maximum: 7 * DAY_MS };
export const RETRY_COUNT: Bounds = { minimum: 0, maximum: 100 };
/** Nobody has so many; a larger number is a slip. */
export const WORKER_COUNT: Bounds = { minimum: 0, maximum: 100_000 };
export const GPU_COUNT: Bounds = { minimum: 1, maximum: 1024 };
/** The least waiting time that can be scaled by, in seconds. */
export const MIN_QUEUE_DELAY = 0.5;
export const MAX_SCALER_VALUE = 1_000_000;
const MAX_LIST_ITEMS = 100;
const MAX_TEXT_LENGTH = 1000;

/** Everything that is wrong with an endpoint by itself, in words that say what to change. What it refers to is checked elsewhere. */
export function endpointFindings(endpoint: Endpoint): string[] {
  return [
    ...nameFindings(endpoint.name),
    ...containerFindings(endpoint),
    ...[foreignImageReason(endpoint.accountId, endpoint.image)].filter((finding) => finding !== undefined),
    ...workerFindings(endpoint),
    ...scalerFindings(endpoint),
    ...timeFindings(endpoint),
    ...(endpoint.compute === 'GPU'
      ? wholeNumberFindings('gpuCount (gpu.count)', endpoint.gpuCount, GPU_COUNT)
      : []),
    ...cudaVersionFindings([
      ...endpoint.allowedCudaVersions,
      ...(endpoint.minCudaVersion === null ? [] : [endpoint.minCudaVersion]),
    ]),
    ...lengthFindings(endpoint),
  ];
}

function workerFindings({ workersMin, workersMax, workersStandby, idleTimeout }: Endpoint): string[] {
  const findings = [
    ...wholeNumberFindings('workersMin (workers.min)', workersMin, WORKER_COUNT),
    ...wholeNumberFindings('workersMax (workers.max)', workersMax, WORKER_COUNT),
    ...wholeNumberFindings('workersStandby', workersStandby, WORKER_COUNT),
  ];
  if (findings.length === 0 && workersMin > workersMax)
    findings.push(
      `workersMin (workers.min) is ${workersMin}, which is more than workersMax (workers.max), ${workersMax}`,
    );
  return [
    ...findings,
    ...wholeNumberFindings('idleTimeout (workers.idleTimeout)', idleTimeout, IDLE_TIMEOUT, 'seconds'),
  ];
}

function scalerFindings({ type, scalerType, scalerValue }: Endpoint): string[] {
  if (type === 'LOAD_BALANCER' && scalerType !== 'REQUEST_COUNT')
    return ['a load balancing endpoint has no queue to wait in, so it scales by REQUEST_COUNT only'];
  if (scalerType === 'REQUEST_COUNT')
    return wholeNumberFindings('the scaler value (requestCount)', scalerValue, {
      minimum: 1,
      maximum: MAX_SCALER_VALUE,
    });
  const fits = scalerValue >= MIN_QUEUE_DELAY && scalerValue <= MAX_SCALER_VALUE;
  return fits
    ? []
    : [
        `the scaler value (queueDelay) must be from ${MIN_QUEUE_DELAY} to ${MAX_SCALER_VALUE} seconds, got ${scalerValue}`,
      ];
}

function timeFindings({ executionTimeout, jobTtl, retention, maxRetries }: Endpoint): string[] {
  const unlimited = executionTimeout === 0;
  return [
    ...(unlimited
      ? []
      : wholeNumberFindings(
          'the execution timeout (timeout, executionTimeoutMs) is 0 for no limit, or',
          executionTimeout,
          ENDPOINT_EXECUTION_TIMEOUT,
          'ms',
        )),
    ...wholeNumberFindings('jobTtl', jobTtl, ENDPOINT_JOB_TTL, 'ms'),
    ...(retention === null ? [] : wholeNumberFindings('retention', retention, ENDPOINT_RETENTION, 'ms')),
    ...wholeNumberFindings('maxRetries', maxRetries, RETRY_COUNT),
  ];
}

/** What has no other limit still ends somewhere. */
function lengthFindings(endpoint: Endpoint): string[] {
  const lists = {
    gpuTypeIds: endpoint.gpuTypeIds,
    'GPU pools': endpoint.gpuPools,
    'CPU flavours': endpoint.cpuFlavors,
    'CUDA versions': endpoint.allowedCudaVersions,
    'data centers': endpoint.dataCenterIds,
    'network volumes': endpoint.networkVolumeIds,
    modelReferences: endpoint.modelReferences,
    compliance: endpoint.compliance,
  };
  const long = Object.entries(lists)
    .filter(([, list]) => list.length > MAX_LIST_ITEMS)
    .map(([name, list]) => `${name} may have at most ${MAX_LIST_ITEMS} items, got ${list.length}`);
  const texts = [endpoint.locations, ...endpoint.modelReferences].some(
    (text) => text.length > MAX_TEXT_LENGTH,
  )
    ? [`locations and modelReferences may have at most ${MAX_TEXT_LENGTH} characters each`]
    : [];
  return [...long, ...texts];
}

function wholeNumberFindings(
  name: string,
  value: number,
  { minimum, maximum }: Bounds,
  unit?: string,
): string[] {
  if (Number.isInteger(value) && value >= minimum && value <= maximum) return [];
  return [
    `${name} must be a whole number ${unit === undefined ? '' : `of ${unit} `}from ${minimum} to ${maximum}, got ${value}`,
  ];
}
