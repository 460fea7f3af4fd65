import assert from 'node:assert/strict';
import { createApiClient } from './api-client.ts';
import type { ApiResponse, ApiClient } from './api-client.ts';
import { createPublicProtocolWorker } from './protocol-workers.ts';
import type { PublicProtocolWorker } from './protocol-workers.ts';

/** A job as the interface shows it. */
export interface JobView {
  id: string;
  status: string;
  output?: unknown;
  error?: unknown;
  input?: unknown;
  delayTime?: number;
  executionTime?: number;
  workerId?: string;
  retries?: number;
  reason?: string;
}

export interface HealthView {
  jobs: { completed: number; failed: number; inProgress: number; inQueue: number; retried: number };
  workers: {
    idle: number;
    initializing: number;
    ready: number;
    running: number;
    throttled: number;
    unhealthy: number;
  };
}

/** A queue endpoint on which nothing runs but what a test starts. */
export interface QueueEndpointClient {
  id: string;
  key: string;
  /** The address of the endpoint; operations are below it. */
  url: string;
  /** Any operation of the job API, by its path below the endpoint. */
  call<T = JobView>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ): Promise<ApiResponse<T>>;
  /** Submits and answers the id. */
  run(input?: unknown, rest?: Record<string, unknown>): Promise<string>;
  /** Submits and waits; `wait` in milliseconds. */
  runSync(input?: unknown, wait?: number, rest?: Record<string, unknown>): Promise<ApiResponse<JobView>>;
  status(id: string): Promise<JobView>;
  /** The job once it has ended, which it must have within this time. */
  waitForEnd(id: string, withinMs?: number): Promise<JobView>;
  health(): Promise<HealthView>;
  /** A worker of the public protocol, with the account's key. */
  worker(id?: string): PublicProtocolWorker;
}

/** Well formed, and of no job. */
export const NO_SUCH_JOB = '00000000-0000-8000-8000-000000000000-u1';

/** Every failure of the job API is an object with one key, `error`, that says what is wrong. */
export function assertJobApiError(answer: ApiResponse<unknown>, status: number, text: RegExp): void {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.headers.get('content-type'), 'application/json; charset=utf-8');
  assert.deepEqual(Object.keys(answer.body as object), ['error']);
  assert.match((answer.body as { error: string }).error, text);
}

/** A body of exactly this many bytes. */
export function jobBodyOfSize(bytes: number): string {
  return `{"input":"${'x'.repeat(bytes - '{"input":""}'.length)}"}`;
}

let workers = 0;

export async function createQueueEndpoint(
  url: string,
  key: string,
  settings: Record<string, unknown> = {},
): Promise<QueueEndpointClient> {
  const client = createApiClient(url, key);
  const body = {
    name: 'jobs',
    type: 'QUEUE',
    image: 'local/shell',
    cpu: [{ id: 'cpu3c', vcpuCount: 2 }],
    scaling: { type: 'QUEUE_DELAY', queueDelay: 4 },
    workers: { min: 0, max: 0 },
    ...settings,
  };
  const made = await client.call<{ id: string }>('POST', '/v2/serverless', body);
  assert.equal(made.status, 201, made.text);
  return queueEndpointClient(client, made.body.id, key);
}

/** The same endpoint, through any client: another server, another key. */
export function queueEndpointClient(client: ApiClient, id: string, key: string): QueueEndpointClient {
  const call: QueueEndpointClient['call'] = (method, path, body, headers) =>
    client.call(method, `/v2/${id}/${path}`, body, headers);
  return {
    id,
    key,
    url: `${client.url}/v2/${id}`,
    call,
    run: async (input = {}, rest = {}) => {
      const { status, body, text } = await call('POST', 'run', { input, ...rest });
      assert.equal(status, 200, text);
      return body.id;
    },
    runSync: (input = {}, wait, rest = {}) =>
      call('POST', wait === undefined ? 'runsync' : `runsync?wait=${wait}`, { input, ...rest }),
    status: async (job) => {
      const { status, body, text } = await call('GET', `status/${job}`);
      assert.equal(status, 200, text);
      return body;
    },
    waitForEnd: async (job, withinMs = 60_000) => {
      const { status, body, text } = await call('GET', `status-sync/${job}?wait=${withinMs}`);
      assert.equal(status, 200, text);
      assert.ok(!['IN_QUEUE', 'IN_PROGRESS'].includes(body.status), text);
      return body;
    },
    health: async () => (await call<HealthView>('GET', 'health')).body,
    worker: (name = `worker-${(workers += 1)}`) =>
      createPublicProtocolWorker({ url: client.url, endpointId: id, workerId: name, key }),
  };
}

/** A job that this worker runs. */
export async function submitAndTake(
  jobs: QueueEndpointClient,
  worker: PublicProtocolWorker,
): Promise<string> {
  const id = await jobs.run();
  assert.equal((await worker.take()).id, id);
  return id;
}

/**
 * What is woken comes in milliseconds, on a busy machine in seconds; what is not, after the 24 s of a poll.
 */
export const WAKEUP_LIMIT_MS = 6_000;

/** How long something took, in milliseconds. */
export async function measureTime<T>(work: () => Promise<T>): Promise<{ took: number; result: T }> {
  const from = performance.now();
  const result = await work();
  return { took: performance.now() - from, result };
}
