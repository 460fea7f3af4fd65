import { JOB_STATUSES } from '../../domain/job-records.ts';
import type { JobStatus } from '../../domain/job-records.ts';
import { DEFAULT_JOB_LIST_LIMIT, JOB_LIST_LIMIT } from '../../domain/limits.ts';
import type { Endpoint } from '../../domain/records.ts';
import { clamp } from '../../queue/job-submission.ts';
import { BerthError } from '../../support/errors.ts';
import { abortOnClose, readBody, sendJson } from '../raw-http.ts';
import { sendJobList } from './job-list-response.ts';
import { MAX_SMALL_BODY_BYTES, parseCount } from './job-operation.ts';
import type { JobCall, JobOperations, JobRoutesDeps } from './job-operation.ts';

/** The operations on the whole queue: `purge-queue`, `health`, `metrics` and `requests`. */
export function jobQueueOperations(deps: JobRoutesDeps): JobOperations {
  return {
    'purge-queue': { methods: ['POST'], mode: 'write', handle: (call) => purge(deps, call) },
    health: { methods: ['GET'], mode: 'read', handle: (call) => health(deps, call) },
    // flash polls this for the workers that may have its job.
    metrics: { methods: ['GET'], mode: 'read', handle: (call) => metrics(deps, call) },
    requests: { methods: ['GET'], mode: 'read', handle: (call) => requests(deps, call) },
  };
}

async function purge(deps: JobRoutesDeps, { request, response, endpoint }: JobCall): Promise<void> {
  await readBody(request, MAX_SMALL_BODY_BYTES);
  const removed = await deps.queue.purge(endpoint.id);
  sendJson(response, 200, `{"removed":${removed},"status":"completed"}`);
}

async function health(deps: JobRoutesDeps, { response, endpoint }: JobCall): Promise<void> {
  const [{ completed, failed, inProgress, inQueue, retried }, { counters }] = await Promise.all([
    deps.queue.counts(endpoint.id),
    countWorkers(deps, endpoint),
  ]);
  sendJson(
    response,
    200,
    JSON.stringify({ jobs: { completed, failed, inProgress, inQueue, retried }, workers: counters }),
  );
}

async function metrics(deps: JobRoutesDeps, { response, endpoint }: JobCall): Promise<void> {
  const { counters, ready } = await countWorkers(deps, endpoint);
  sendJson(response, 200, JSON.stringify({ workers: counters, readyWorkers: ready }));
}

async function countWorkers(deps: JobRoutesDeps, endpoint: Endpoint) {
  const workers = await deps.queue.workers(endpoint.id);
  const healthy = workers.filter(({ unhealthy }) => unhealthy === null);
  const running = healthy.filter(({ busy }) => busy > 0).length;
  const { initializing = 0, throttled = 0, unhealthy = 0 } = deps.workerCounts?.(endpoint) ?? {};
  const counters = {
    idle: healthy.length - running,
    initializing,
    ready: healthy.length,
    running,
    throttled,
    unhealthy: Math.max(unhealthy, workers.length - healthy.length),
  };
  return { counters, ready: healthy.map(({ workerId }) => workerId) };
}

async function requests(deps: JobRoutesDeps, { response, endpoint, query }: JobCall): Promise<void> {
  const status = query.get('status');
  if (status !== null && !JOB_STATUSES.includes(status as JobStatus))
    throw new BerthError('rule', `status must be one of ${JOB_STATUSES.join(', ')}`);
  const limit = clamp(parseCount(query, 'limit', DEFAULT_JOB_LIST_LIMIT), JOB_LIST_LIMIT);
  const offset = Math.max(0, parseCount(query, 'offset', 0));
  const pieces = deps.queue.list(endpoint.id, {
    ...(status !== null && { status: status as JobStatus }),
    limit,
    offset,
  });
  await sendJobList(response, pieces, abortOnClose(response));
}
