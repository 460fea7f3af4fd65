import { JOB_STATUSES } from '../../domain/job-records.ts';
import {
  DEFAULT_JOB_LIST_LIMIT,
  EXECUTION_TIMEOUT_MS,
  JOB_LIST_LIMIT,
  JOB_RETENTION_MS,
  JOB_TTL_MS,
  MAX_IDEMPOTENCY_KEY_LENGTH,
  MAX_RUN_BODY_BYTES,
  MAX_RUNSYNC_BODY_BYTES,
  MAX_WEBHOOK_LENGTH,
  STREAM_WAIT_MS,
  SYNC_WAIT_MS,
} from '../../domain/limits.ts';
import {
  anyValue,
  boolean,
  integer,
  list,
  named,
  nullable,
  number,
  object,
  stringEnum,
  text,
} from '../rest/json-schema.ts';
import type { Schema } from '../rest/json-schema.ts';
import { startPhasesSchema } from '../rest/start-phases.schema.ts';
import type { DocumentedOperation, ResponseFormat } from '../rest/openapi.ts';

/**
 * The job API in the OpenAPI document of REST v2. Its routes read and write JSON text themselves, so that
 * payloads keep their digits; this describes them and serves nothing.
 */

const TAG = 'Jobs';

const format: ResponseFormat = {
  name: 'Job',
  errorSchema: named(
    'JobError',
    object(
      { error: text({ description: 'What is wrong, and what to change' }) },
      { limit: text({ description: 'The limit of the account or the installation that is reached' }) },
    ),
  ),
  errorMediaType: 'application/json',
  commonErrorStatuses: [400, 401, 403, 404, 429, 500, 503],
};

const status = stringEnum(JOB_STATUSES);
const summary = named('JobSummary', object({ id: text(), status }));

const request: Schema = named('JobRequest', {
  ...object(
    { input: anyValue({ description: 'What the handler receives; any JSON value but null' }) },
    {
      webhook: text({
        format: 'uri',
        maxLength: MAX_WEBHOOK_LENGTH,
        description: 'An http or https address that gets the result when the job ends',
      }),
      policy: object(
        {},
        {
          executionTimeout: number({
            description: `Milliseconds that one attempt may run: ${range(EXECUTION_TIMEOUT_MS)}`,
          }),
          ttl: number({
            description:
              'Milliseconds from submission until the job is dropped, whatever its state: ' +
              `${range(JOB_TTL_MS)}`,
          }),
          lowPriority: boolean({ default: false, description: 'Waits behind every job that is not' }),
        },
      ),
      retention: number({
        description: `Berth only: milliseconds for which the result is kept: 0 to ${JOB_RETENTION_MS.longest}`,
      }),
      s3Config: object({}, {}, { description: 'Credentials that are passed on to the worker' }),
    },
    {
      description:
        'Values out of range are clamped. Fields that are not named here reach the worker as they are',
      examples: [{ input: { prompt: 'Hello' } }],
    },
  ),
  additionalProperties: true,
});

const job = named(
  'Job',
  object(
    { id: text(), status },
    {
      delayTime: integer({ description: 'Milliseconds in the queue' }),
      executionTime: integer({ description: 'Milliseconds on a worker' }),
      workerId: text({ description: 'Empty where no worker had it' }),
      retries: integer({ description: 'How often it was tried again' }),
      output: anyValue({ description: 'What the handler returned, or its last progress update' }),
      error: anyValue({ description: 'Why it failed' }),
      input: anyValue({ description: 'While it has not ended' }),
      reason: text({ description: 'Berth only: why it waits' }),
      phases: startPhasesSchema,
    },
    { description: 'One request on a queue endpoint' },
  ),
);

const listedJob = named(
  'ListedJob',
  object(
    {
      id: text(),
      status,
      createdAt: text({ format: 'date-time' }),
      retries: integer(),
      input: anyValue(),
    },
    {
      delayTime: integer(),
      executionTime: integer(),
      workerId: text(),
      output: anyValue(),
      error: anyValue(),
    },
  ),
);

const chunks: Schema = list(object({ output: anyValue() }, { metrics: anyValue() }), {
  description: 'What the job has produced since the last call; each chunk is returned once',
});
const envelope = object({ id: text(), status, stream: chunks });

const health = named(
  'EndpointHealth',
  object({
    jobs: object({
      completed: integer(),
      failed: integer(),
      inProgress: integer(),
      inQueue: integer(),
      retried: integer(),
    }),
    workers: object({
      idle: integer(),
      initializing: integer(),
      ready: integer(),
      running: integer(),
      throttled: integer(),
      unhealthy: integer(),
    }),
  }),
);

const logLine = object({
  ts: text({ format: 'date-time' }),
  source: stringEnum(['container', 'system']),
  line: text(),
});

const milliseconds = number({ description: 'Milliseconds since 1970' });
const webhookDelivery = named(
  'WebhookDelivery',
  object({
    id: text(),
    endpointId: text(),
    jobId: text(),
    url: text(),
    attempts: integer({ description: 'Attempts made so far' }),
    nextAt: nullable(milliseconds),
    state: stringEnum(['pending', 'delivered', 'failed']),
    lastStatus: nullable(integer({ description: 'What the receiver answered last' })),
    lastError: nullable(text()),
    createdAt: milliseconds,
    updatedAt: milliseconds,
  }),
);

const endpointId = text({ minLength: 1, description: 'The id of a queue endpoint' });
const byEndpoint = object({ endpointId });
const byJob = object({ endpointId, jobId: text({ minLength: 1, description: 'The id that run returned' }) });
const wait = number({
  default: SYNC_WAIT_MS.default,
  description: `Milliseconds to wait for the end: ${range(SYNC_WAIT_MS)}. Values out of range are clamped`,
});

export const jobApiOperations: readonly DocumentedOperation[] = [
  {
    id: 'runJob',
    method: 'POST',
    path: '/{endpointId}/run',
    summary: 'Submit a job',
    description:
      'Returns at once. With the header `Idempotency-Key` (at most ' +
      `${MAX_IDEMPOTENCY_KEY_LENGTH} characters), the same request sent again returns the same job; ` +
      'another body with that key is 409.',
    access: 'write',
    params: byEndpoint,
    body: request,
    bodyLimit: MAX_RUN_BODY_BYTES,
    response: summary,
    errorStatuses: [409, 413, 507],
  },
  {
    id: 'runJobSync',
    method: 'POST',
    path: '/{endpointId}/runsync',
    summary: 'Submit a job and wait for its result',
    description: 'Returns the job as it is when the wait ends: read `status`, and go on with `status-sync`.',
    access: 'write',
    params: byEndpoint,
    query: object({}, { wait }),
    body: request,
    bodyLimit: MAX_RUNSYNC_BODY_BYTES,
    response: job,
    errorStatuses: [409, 413, 507],
  },
  {
    id: 'getJobStatus',
    method: 'GET',
    path: '/{endpointId}/status/{jobId}',
    summary: 'Get a job with its result',
    access: 'read',
    params: byJob,
    query: object(
      {},
      {
        ttl: number({
          description: 'Milliseconds until the job is dropped, from now; needs a key that may write',
        }),
      },
    ),
    response: job,
  },
  {
    id: 'waitForJob',
    method: 'GET',
    path: '/{endpointId}/status-sync/{jobId}',
    summary: 'Wait for the end of a job',
    access: 'read',
    params: byJob,
    query: object({}, { wait }),
    response: job,
  },
  {
    id: 'streamJob',
    method: 'GET',
    path: '/{endpointId}/stream/{jobId}',
    summary: 'Read what a job has produced so far',
    description:
      'With `Accept: text/event-stream`, every chunk from the beginning as server-sent events until ' +
      'the job has ended; `Last-Event-ID` resumes after a chunk.',
    access: 'read',
    params: byJob,
    query: object(
      {},
      {
        wait: number({
          description:
            'Milliseconds to wait for a first chunk: ' +
            `${range(STREAM_WAIT_MS)}. Values out of range are clamped`,
        }),
        envelope: boolean({
          description:
            'Whether the chunks come as {id, status, stream}. Clients that name a JSON content type ' +
            'get that without asking',
        }),
      },
    ),
    response: { anyOf: [chunks, envelope] },
    alsoEventStream: true,
  },
  {
    id: 'cancelJob',
    method: 'POST',
    path: '/{endpointId}/cancel/{jobId}',
    summary: 'Cancel a job that waits or runs',
    access: 'write',
    params: byJob,
    response: summary,
  },
  {
    id: 'retryJob',
    method: 'POST',
    path: '/{endpointId}/retry/{jobId}',
    summary: 'Run a failed job again',
    description: 'Only a FAILED or TIMED_OUT job can be retried, while its result is kept.',
    access: 'write',
    params: byJob,
    response: summary,
  },
  {
    id: 'purgeQueue',
    method: 'POST',
    path: '/{endpointId}/purge-queue',
    summary: 'Remove all jobs that wait',
    access: 'write',
    params: byEndpoint,
    response: object({ removed: integer(), status: stringEnum(['completed']) }),
  },
  {
    id: 'getEndpointHealth',
    method: 'GET',
    path: '/{endpointId}/health',
    summary: 'Count the jobs and workers of an endpoint',
    access: 'read',
    params: byEndpoint,
    response: health,
  },
  {
    id: 'listJobs',
    method: 'GET',
    path: '/{endpointId}/requests',
    summary: 'List the jobs of an endpoint, newest first',
    access: 'read',
    params: byEndpoint,
    query: object(
      {},
      {
        status,
        limit: integer({
          default: DEFAULT_JOB_LIST_LIMIT,
          description: `How many to return: ${range(JOB_LIST_LIMIT)}. Values out of range are clamped`,
        }),
        offset: integer({ default: 0, description: 'How many to skip' }),
      },
    ),
    response: object({ requests: list(listedJob) }),
  },
  {
    id: 'getJobLogs',
    method: 'GET',
    path: '/{endpointId}/logs/{jobId}',
    summary: 'Read what the worker wrote while it ran a job',
    description:
      'Berth only. With `Accept: text/event-stream`, the lines as they are written until the job has ended.',
    access: 'read',
    params: byJob,
    response: object({ logs: list(logLine) }),
    alsoEventStream: true,
  },
  {
    id: 'listWebhookDeliveries',
    method: 'GET',
    path: '/{endpointId}/webhooks',
    summary: 'List the webhooks that were sent or wait to be sent, newest first',
    description: 'Berth only.',
    access: 'write',
    params: byEndpoint,
    query: object(
      {},
      {
        jobId: text({ description: 'Only those of this job' }),
        limit: integer({
          default: DEFAULT_JOB_LIST_LIMIT,
          description: `How many to return: ${range(JOB_LIST_LIMIT)}. Values out of range are clamped`,
        }),
      },
    ),
    response: object({ deliveries: list(webhookDelivery) }),
  },
  {
    id: 'redeliverWebhook',
    method: 'POST',
    path: '/{endpointId}/webhooks/{deliveryId}/redeliver',
    summary: 'Send a webhook again',
    description:
      'Berth only. The same body, with the same delivery id. One that still waits to be sent is not changed.',
    access: 'write',
    params: object({ endpointId, deliveryId: text({ minLength: 1, description: 'The id of the delivery' }) }),
    response: webhookDelivery,
  },
].map((operation) => ({ status: 200, tag: TAG, format, ...operation }) as DocumentedOperation);

function range({ minimum, maximum }: { minimum: number; maximum: number }): string {
  return `${minimum} to ${maximum}`;
}
