import { foreignImageReason } from '../images/local-image-names.ts';
import type { Endpoint } from '../records.ts';
import { containerFindings, cudaVersionFindings, nameFindings } from '../templates/template-rules.ts';
import {
  type Bounds,
  IDLE_TIMEOUT,
  EXECUTION_TIMEOUT_MS,
  JOB_TTL_MS,
  RETENTION_MS,
  RETRY_COUNT,
  WORKER_COUNT,
  GPU_COUNT,
  QUEUE_DELAY,
  MAX_ENDPOINT_LIST_LENGTH,
  MAX_ENDPOINT_TEXT_LENGTH,
  REQUEST_COUNT,
} from '../limits.ts';

/**
 * Everything that is wrong with an endpoint by itself, in words that say what to change. What it refers to is
 * checked elsewhere.
 */
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
    return wholeNumberFindings('the scaler value (requestCount)', scalerValue, REQUEST_COUNT);
  const fits = scalerValue >= QUEUE_DELAY.minimum && scalerValue <= QUEUE_DELAY.maximum;
  return fits
    ? []
    : [
        `the scaler value (queueDelay) must be from ${QUEUE_DELAY.minimum} to ${QUEUE_DELAY.maximum} ` +
          `seconds, got ${scalerValue}`,
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
          EXECUTION_TIMEOUT_MS,
          'ms',
        )),
    ...wholeNumberFindings('jobTtl', jobTtl, JOB_TTL_MS, 'ms'),
    ...(retention === null ? [] : wholeNumberFindings('retention', retention, RETENTION_MS, 'ms')),
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
    .filter(([, list]) => list.length > MAX_ENDPOINT_LIST_LENGTH)
    .map(([name, list]) => `${name} may have at most ${MAX_ENDPOINT_LIST_LENGTH} items, got ${list.length}`);
  const texts = [endpoint.locations, ...endpoint.modelReferences].some(
    (text) => text.length > MAX_ENDPOINT_TEXT_LENGTH,
  )
    ? [`locations and modelReferences may have at most ${MAX_ENDPOINT_TEXT_LENGTH} characters each`]
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
    `${name} must be a whole number ${unit === undefined ? '' : `of ${unit} `}from ${minimum} to ` +
      `${maximum}, got ${value}`,
  ];
}
