import {
  boolean,
  propertiesOf,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  stringEnum,
  text,
} from '../rest/json-schema.ts';
import type { Schema, Static } from '../rest/json-schema.ts';
import { dateTime } from './common.v2.schema.ts';
import { containerFields, containerResponseFields } from './container.v2.schema.ts';
import {
  MAX_NAME_LENGTH,
  EXECUTION_TIMEOUT_MS,
  GPU_COUNT,
  IDLE_TIMEOUT,
  JOB_TTL_MS,
  QUEUE_DELAY,
  RETRY_COUNT,
  RETENTION_MS,
  MAX_IMAGE_REFERENCE_LENGTH,
  CUDA_VERSION_PATTERN,
  V2_MIN_VCPU_COUNT,
  REQUEST_COUNT,
  WORKER_COUNT,
} from '../../domain/limits.ts';
import { ENDPOINT_TYPES, FLASHBOOT_MODES } from '../../domain/records.ts';
import { ENDPOINT_DEFAULTS, V2_ENDPOINT_DEFAULTS } from '../../domain/endpoints/endpoint-defaults.ts';

/** The wire objects of serverless endpoints. */

const type = stringEnum(ENDPOINT_TYPES, {
  description: 'Jobs that wait in a queue, or HTTP requests straight to the workers',
});
const flashboot = stringEnum(FLASHBOOT_MODES, {
  description: 'Whether stopped workers are kept for a faster start',
});

const accelerate = boolean({
  description:
    'Berth only: whether workers with the public Python SDK (1.7 to 1.12) get the fast worker channel; ' +
    'see docs/python.md',
});

const queueDelay = named(
  'QueueDelayScaling',
  object(
    {
      type: stringEnum(['QUEUE_DELAY']),
      queueDelay: number({
        minimum: QUEUE_DELAY.minimum,
        description: 'Seconds that a job may wait before a worker is added',
      }),
    },
    {},
    { description: 'By how long jobs wait; for queues only' },
  ),
);
const requestCount = named(
  'RequestCountScaling',
  object(
    {
      type: stringEnum(['REQUEST_COUNT']),
      requestCount: integer({ minimum: REQUEST_COUNT.minimum, description: 'Requests for each worker' }),
    },
    {},
    { description: 'By how many requests there are' },
  ),
);
const scaling = named('EndpointScaling', anyOf(queueDelay, requestCount, 'When workers are added'));

const pools = (limits: { minItems?: number }) =>
  list(text({ minLength: 1 }), {
    ...limits,
    description: 'GPU pools of the catalog; a GPU type that belongs to no pool counts as its own pool',
  });
const excludedTypes = list(text({ pattern: '^\\s*[^-\\s]' }), {
  uniqueItems: true,
  description: 'GPU types that the pools are taken without',
});
const count = integer({ ...GPU_COUNT, default: 1, description: 'GPUs of each worker' });
const cudaVersions = list(text({ pattern: CUDA_VERSION_PATTERN }), {
  description: 'CUDA versions that a machine may have; empty is any. Not together with minCudaVersion',
});
const minCudaVersionSchema = (pattern: string) =>
  text({
    pattern,
    description: 'The lowest CUDA version that a machine may have. Not together with allowedCudaVersions',
  });

const vcpuCount = integer({ minimum: V2_MIN_VCPU_COUNT, description: 'A power of two' });
const flavor = text({ minLength: 1, description: 'A CPU flavour of the catalog' });
const cpu = list(object({ id: flavor, vcpuCount }), {
  minItems: 1,
  uniqueItems: true,
  description: 'What a worker may run on, the most wanted first',
});

const idleTimeout = integer({
  ...IDLE_TIMEOUT,
  description: 'Seconds until a worker without work stops. Not for a queue that scales by REQUEST_COUNT',
});
const workers = object(
  {},
  {
    min: integer({ minimum: WORKER_COUNT.minimum, default: ENDPOINT_DEFAULTS.workersMin }),
    max: integer({ minimum: WORKER_COUNT.minimum, default: ENDPOINT_DEFAULTS.workersMax }),
    idleTimeout,
  },
);

const settings = {
  ...containerFields,
  workers,
  dataCenterIds: list(text({ minLength: 1 }), { description: 'Where workers run; empty is anywhere' }),
  networkVolumes: list(text({ minLength: 1 }), {
    description: 'At most one in each data center; they pin the workers to those',
  }),
  flashboot,
  accelerate: nullable(accelerate),
  timeout: integer({
    minimum: 0,
    description:
      `Milliseconds that a job may run: ${EXECUTION_TIMEOUT_MS.minimum} to ` +
      `${EXECUTION_TIMEOUT_MS.maximum}, or 0 for no limit. Default: ` +
      `${V2_ENDPOINT_DEFAULTS.executionTimeout}`,
  }),
  jobTtl: integer({
    ...JOB_TTL_MS,
    description:
      'Berth only: milliseconds from submission until a job is dropped, whatever its state. Default: ' +
      `${ENDPOINT_DEFAULTS.jobTtl}`,
  }),
  retention: nullable(
    integer({
      ...RETENTION_MS,
      description: 'Berth only: milliseconds for which a result is kept; null is the built-in time',
    }),
  ),
  maxRetries: integer({
    ...RETRY_COUNT,
    description:
      'Berth only: how often a job is tried again when its worker is lost. Default: ' +
      `${ENDPOINT_DEFAULTS.maxRetries}`,
  }),
};
const name = text({ minLength: 1, maxLength: MAX_NAME_LENGTH, description: 'Need not be unique' });
const image = text({
  minLength: 1,
  maxLength: MAX_IMAGE_REFERENCE_LENGTH,
  description: 'Container image with tag',
});
const templateId = text({
  minLength: 1,
  description: 'A serverless template to take the container from, once; fields of the body override it',
});

const createGpu = object(
  { pools: pools({ minItems: 1 }) },
  {
    excludedTypes,
    count,
    allowedCudaVersions: cudaVersions,
    minCudaVersion: minCudaVersionSchema(CUDA_VERSION_PATTERN),
  },
);
const updateGpu: Schema<Partial<Static<typeof createGpu>>> = {
  ...object(
    {},
    { ...propertiesOf(createGpu), minCudaVersion: minCudaVersionSchema(`^$|${CUDA_VERSION_PATTERN}`) },
  ),
  dependentRequired: { excludedTypes: ['pools'] },
};

const createFields = object({}, { name, type, image, templateId, gpu: createGpu, cpu, scaling, ...settings });

/** Linters want a needed field named where it is needed; what it may hold stands in the fields above. */
function requireProperties(...names: string[]) {
  return { properties: Object.fromEntries(names.map((needs) => [needs, {}])), required: names };
}

export const createEndpoint: typeof createFields = named('CreateEndpoint', {
  ...createFields,
  description:
    'Without a template, name, type, image and scaling are needed, and exactly one of gpu and cpu.',
  if: { not: requireProperties('templateId') },
  then: requireProperties('name', 'type', 'image', 'scaling'),
});
export const updateEndpoint = named(
  'UpdateEndpoint',
  object({}, { name, image, templateId, gpu: updateGpu, cpu, scaling, ...settings }),
);

const url = (description: string) => text({ description });
const queueUrls = object({
  run: url('Submits a job'),
  runSync: url('Submits a job and waits for its result'),
  status: url('The status of a job; replace {job_id} with its id'),
  stream: url('What a job has produced so far'),
  cancel: url('Stops a job'),
  retry: url('Runs a failed job again'),
  purgeQueue: url('Removes all jobs that wait'),
  health: url('Counts of jobs and workers'),
});
const loadBalancerUrls = object({
  base: url('Paths below it are forwarded to the workers'),
  health: url('The health check of a worker'),
});

export const endpoint = named(
  'Endpoint',
  object(
    {
      id: text(),
      name: text(),
      type,
      requestUrls: anyOf(
        named('QueueRequestUrls', queueUrls),
        named('LoadBalancerRequestUrls', loadBalancerUrls),
        'Where requests go',
      ),
      ...containerResponseFields,
      gpu: nullable(
        named(
          'EndpointGpu',
          object({
            pools: pools({}),
            excludedTypes: list(text()),
            count: integer(),
            allowedCudaVersions: list(text()),
            minCudaVersion: nullable(text()),
          }),
        ),
      ),
      workers: object({ min: integer(), max: integer() }, { idleTimeout }),
      scaling,
      dataCenterIds: list(text()),
      networkVolumes: list(text()),
      timeout: integer(),
      flashboot,
      accelerate,
      jobTtl: integer(),
      retention: nullable(integer()),
      maxRetries: integer(),
      createdAt: dateTime('When it was made'),
    },
    {
      cpu: list(object({ id: text(), vcpuCount: integer(), memory: integer({ description: 'In GB' }) }), {
        description: 'Of a CPU endpoint',
      }),
    },
    { description: 'A serverless address' },
  ),
);

function anyOf<A, B>(one: Schema<A>, other: Schema<B>, description: string): Schema<A | B> {
  return { anyOf: [one, other], description };
}
