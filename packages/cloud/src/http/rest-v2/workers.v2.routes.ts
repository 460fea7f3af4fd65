import type { Catalog } from '../../resources/catalog/catalog.ts';
import type { AllServices } from '../../resources/resources.ts';
import { type WorkerView, WORKER_STATUSES } from '../../resources/endpoints/endpoint-workers.ts';
import { isoTime } from '../../support/clock.ts';
import { schemaError } from '../../support/errors.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
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
import type { Static } from '../rest/json-schema.ts';
import { startPhases, startPhasesJson } from '../../domain/endpoints/start-phases.ts';
import { startPhasesSchema } from '../rest/start-phases.schema.ts';
import { byId, dateTime, virtualGpu } from './common.v2.schema.ts';
import { logEvents, logQuery, readLogQuery } from './log-events.v2.ts';
import { pageQuery, pagination } from './pagination.v2.ts';
import { MAX_PAGE_SIZE } from '../../domain/limits.ts';

const worker = named(
  'Worker',
  object(
    {
      id: text(),
      status: stringEnum(WORKER_STATUSES),
      isStale: boolean({ description: 'Made from an earlier version of the endpoint' }),
      version: nullable(integer()),
      gpuCount: integer(),
      image: nullable(text()),
      uptimeSeconds: nullable(integer()),
      gpuTypeId: nullable(text()),
      dataCenterId: nullable(text()),
      startedAt: nullable(dateTime('When it was started')),
      accelerated: boolean({
        description: 'Berth only: it speaks the fast worker channel, by itself or by acceleration',
      }),
      phases: startPhasesSchema,
      reason: nullable(text({ description: 'Berth only: the progress of its start, or its problem' })),
    },
    { gpuVirtual: virtualGpu },
  ),
);

const summary = named(
  'WorkerSummary',
  object({
    running: integer(),
    idle: integer(),
    initializing: integer(),
    throttled: integer(),
    unhealthy: integer(),
    total: integer(),
  }),
);

const workerMetrics = named(
  'WorkerMetrics',
  object({
    at: dateTime('When it was measured'),
    busy: boolean({ description: 'Whether it runs a job' }),
    vcpuCount: number({ description: 'The CPUs that it was given' }),
    cpu: nullable(number({ description: 'CPUs in use; null while it does not run' })),
    memoryBytes: nullable(number({ description: 'Null while it does not run' })),
    gpus: list(object({ util: number(), memoryUtil: number() }), { description: 'In per cent' }),
  }),
);

const release = named(
  'Release',
  object({
    id: text(),
    version: nullable(integer()),
    source: stringEnum(['GIT_BUILD', 'MANUAL']),
    buildId: nullable(text()),
    createdByUserId: nullable(text()),
    workerCount: integer(),
    createdAt: dateTime('When it was made'),
    diff: list(object({ field: text(), old: anyValue(), new: anyValue() })),
  }),
);

const rollout = object({
  inProgress: boolean(),
  workersOnLatest: integer(),
  workersTotal: integer(),
  percentOnLatest: integer(),
});
const byWorker = object({ id: text({ minLength: 1 }), workerId: text({ minLength: 1 }) });

export function workerOperations({ workers, catalog }: AllServices): Operation[] {
  const tag = 'Serverless';
  return [
    operation({
      id: 'listWorkers',
      method: 'GET',
      path: '/serverless/{id}/workers',
      tag,
      summary: 'List the workers of an endpoint',
      access: 'read',
      params: byId,
      query: object(
        {},
        { ended: boolean({ default: false, description: 'Berth only: also the last ones that ended' }) },
      ),
      status: 200,
      response: named(
        'WorkerList',
        object(
          {
            workers: list(worker),
            summary,
            endpointVersion: nullable(integer()),
            reason: nullable(text({ description: 'Berth only: why no worker could take work now' })),
            failedStarts: integer({
              description: 'Berth only: how many workers in a row crashed or could not be started',
            }),
          },
          {
            ended: list(object({ id: text(), endedAt: dateTime('When it ended') }), {
              description: 'Berth only: the last workers that ended, newest first, if requested',
            }),
          },
        ),
      ),
      errorStatuses: [404, 422],
      handle: async ({ caller, params, query }) => {
        const { endpoint, workers: found, reason, failedStarts } = await workers.list(caller, params.id);
        const ended = query.ended === true ? await workers.listEnded(caller, params.id) : undefined;
        return {
          ...(ended !== undefined && {
            ended: ended.map(({ id, endedAt }) => ({ id, endedAt: isoTime(endedAt ?? 0) })),
          }),
          workers: await Promise.all(found.map((view) => serializeWorker(view, catalog))),
          summary: summaryOf(found),
          endpointVersion: endpoint.version,
          reason,
          failedStarts,
        };
      },
    }),
    operation({
      id: 'streamWorkerLogs',
      method: 'GET',
      path: '/serverless/{id}/workers/{workerId}/logs',
      tag,
      summary: 'Follow the log of a worker',
      access: 'read',
      eventStream: true,
      description:
        'Server-sent events; `data` is one line as {ts, source, line}. Last-Event-ID goes before ' +
        '`since`, and `since` before `tail`. The log of a worker that has ended stays readable for a ' +
        'while. With `follow=false` the stream ends with what is there.',
      params: byWorker,
      query: logQuery,
      status: 200,
      errorStatuses: [404, 422],
      handle: async ({ caller, params, query, lastEventId, signal }) => {
        const lines = await workers.logs(
          caller,
          params.id,
          params.workerId,
          readLogQuery(query, lastEventId),
          signal,
        );
        return logEvents(lines) as never;
      },
    }),
    operation({
      id: 'getWorkerMetrics',
      method: 'GET',
      path: '/serverless/{id}/workers/{workerId}/metrics',
      tag,
      summary: 'See what a worker uses now',
      access: 'read',
      description:
        'Berth only. Measured at most every two seconds. `/serverless/{id}/workers/{workerId}/history` ' +
        'has what it used before, `/serverless/{id}/metrics` the history of all workers of the ' +
        'endpoint together.',
      params: byWorker,
      status: 200,
      response: workerMetrics,
      errorStatuses: [404],
      handle: async ({ caller, params }) => {
        const { at, busy, vcpuCount, usage } = await workers.usage(caller, params.id, params.workerId);
        return {
          at: isoTime(at),
          busy,
          vcpuCount,
          cpu: usage?.cpu ?? null,
          memoryBytes: usage?.memoryInBytes ?? null,
          gpus: usage?.gpus.map(({ util, memoryUtil }) => ({ util, memoryUtil })) ?? [],
        };
      },
    }),
    operation({
      id: 'stopWorker',
      method: 'POST',
      path: '/serverless/{id}/workers/{workerId}/stop',
      tag,
      summary: 'Stop a worker',
      access: 'write',
      description:
        'Berth only. It gets no more jobs, and ends when it has finished those that it has. Where the ' +
        'endpoint needs a worker, another one starts.',
      params: byWorker,
      status: 204,
      errorStatuses: [404],
      handle: async ({ caller, params }) => workers.stop(caller, params.id, params.workerId),
    }),
    operation({
      id: 'listReleases',
      method: 'GET',
      path: '/serverless/{id}/releases',
      tag,
      summary: 'List the releases of an endpoint, newest first',
      access: 'read',
      params: byId,
      query: object({}, pageQuery),
      status: 200,
      response: named(
        'ReleaseList',
        object({ endpointVersion: nullable(integer()), rollout, releases: list(release), pagination }),
      ),
      errorStatuses: [404, 422],
      handle: async ({ caller, params, query: { cursor, limit = MAX_PAGE_SIZE } }) => {
        const before = cursor === undefined ? undefined : readCursor(cursor);
        const found = await workers.releases(caller, params.id, {
          limit: limit + 1,
          ...(before !== undefined && { before }),
        });
        const page = found.releases.slice(0, limit);
        const hasNextPage = found.releases.length > limit;
        const last = page.at(-1);
        return {
          endpointVersion: found.endpoint.version,
          rollout: found.rollout,
          releases: page.map(({ id, version, accountId, createdAt, changes }) => ({
            id,
            version,
            source: 'MANUAL' as const,
            buildId: null,
            createdByUserId: accountId,
            workerCount: found.workersOn(version),
            createdAt: isoTime(createdAt),
            diff: changes.map(({ field, from = null, to = null }) => ({ field, old: from, new: to })),
          })),
          pagination: {
            nextCursor: hasNextPage && last !== undefined ? `v${last.version}` : null,
            hasNextPage,
          },
        };
      },
    }),
    operation({
      id: 'rollBack',
      method: 'POST',
      path: '/serverless/{id}/releases/{version}/rollback',
      tag,
      summary: 'Roll back to an earlier release',
      access: 'write',
      description: 'Makes a new release with the old content.',
      params: object({ id: text({ minLength: 1 }), version: text({ pattern: '^\\d{1,9}$' }) }),
      status: 200,
      response: named('RolledBack', object({ endpointVersion: integer() })),
      errorStatuses: [400, 404],
      handle: async ({ caller, params }) => ({
        endpointVersion: (await workers.rollback(caller, params.id, Number(params.version))).version,
      }),
    }),
  ];
}

async function serializeWorker(
  { worker: found, status, stale, accelerated, uptimeSeconds, reason }: WorkerView,
  catalog: Catalog,
): Promise<Static<typeof worker>> {
  const { gpuTypeId, dataCenterId } = found;
  const isVirtual = gpuTypeId !== null && (await catalog.isVirtualGpu(dataCenterId, gpuTypeId));
  return {
    id: found.id,
    status,
    isStale: stale,
    version: found.version,
    gpuCount: found.gpuCount,
    image: found.image,
    uptimeSeconds,
    gpuTypeId,
    ...(isVirtual && { gpuVirtual: true as const }),
    dataCenterId,
    startedAt: isoTime(found.createdAt),
    accelerated,
    phases: startPhasesJson(startPhases(found)),
    reason,
  };
}

function summaryOf(found: WorkerView[]): Static<typeof summary> {
  const count = (status: WorkerView['status']): number =>
    found.filter((view) => view.status === status).length;
  return {
    running: count('RUNNING'),
    idle: count('IDLE'),
    initializing: count('INITIALIZING'),
    throttled: count('THROTTLED'),
    unhealthy: count('UNHEALTHY'),
    total: found.length,
  };
}

function readCursor(cursor: string): number {
  const version = /^v(\d{1,9})$/.exec(cursor)?.[1];
  if (version === undefined)
    throw schemaError(['$.cursor: is not a cursor of this list; start again without one']);
  return Number(version);
}
