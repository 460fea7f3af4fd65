import { averageOf, countOf, percentileOf } from '../../domain/history/rollup.ts';
import type { Rollup } from '../../domain/history/rollup.ts';
import type { AllServices } from '../../resources/resources.ts';
import { DEFAULT_RANGE } from '../../telemetry/history/history.ts';
import type { HistoryAnswer, HistoryPoint } from '../../telemetry/history/history.ts';
import { isoTime } from '../../support/clock.ts';
import { notFound } from '../../support/errors.ts';
import { integer, list, named, nullable, number, object, text } from '../rest/json-schema.ts';
import type { Schema, Static } from '../rest/json-schema.ts';
import type { Operation } from '../rest/rest-operation.ts';
import { operation } from '../rest/rest-operation.ts';
import { byId, dateTime } from './common.v2.schema.ts';

const historyQuery = object(
  {},
  {
    range: text({
      default: DEFAULT_RANGE,
      pattern: '^[1-9][0-9]{0,4}[mhd]$',
      description: 'How far back, in minutes, hours or days: 90m, 6h, 7d',
    }),
    step: text({
      pattern: '^[1-9][0-9]{0,4}[mhd]$',
      description:
        'The time between two points, written in the same way. Default: so that there are about 60. Up ' +
        'to two days back it may be less than an hour.',
    }),
  },
);

const average = (description: string) => nullable(number({ description }));
const percentiles = named(
  'HistoryPercentiles',
  object({ average: number(), p50: number(), p70: number(), p90: number(), p98: number() }, undefined, {
    description: 'Milliseconds, from histogram buckets',
  }),
);
const sampled = named('HistorySampled', object({ average: number(), max: number() }));

const hardwareFields = {
  cpu: nullable(sampled),
  memory: nullable(sampled),
  gpu: nullable(sampled),
  gpuMemory: nullable(sampled),
};
const usageFields = {
  ...hardwareFields,
  cost: number({ description: 'US dollars, from the ledger' }),
};
const endpointFields = {
  requests: integer({ description: 'Jobs that were submitted' }),
  completed: integer(),
  failed: integer(),
  cancelled: integer(),
  timedOut: integer(),
  retries: integer({ description: 'Attempts that were repeated because a worker was lost' }),
  waitTime: nullable(percentiles),
  runTime: nullable(percentiles),
  queued: nullable(sampled),
  running: nullable(sampled),
  workers: object({
    running: average('Workers with a job, on average'),
    idle: average('Workers without a job'),
    initializing: average('Workers that start'),
    throttled: average('Workers that are wanted and cannot be placed'),
    unhealthy: average('Workers that fail their checks'),
  }),
  coldStarts: object({
    count: integer(),
    imageMs: average('Until the image was there'),
    startMs: average('Until the process or container ran'),
    connectMs: average('Until the first heartbeat of the worker'),
    totalMs: average('All of these'),
  }),
  ...usageFields,
};
const stepFields = {
  from: dateTime('The start of the first point'),
  to: dateTime('The end of the last point, which has begun and is not over'),
  stepSeconds: integer(),
};
const at = dateTime('The start of the step');
const endpointHistory = named(
  'EndpointHistory',
  object({
    endpointId: text(),
    ...stepFields,
    points: list(named('EndpointHistoryPoint', object({ at, ...endpointFields }))),
    total: named('EndpointHistoryTotal', object(endpointFields)),
  }),
);
const podHistory = named(
  'PodHistory',
  object({
    podId: text(),
    ...stepFields,
    points: list(named('PodHistoryPoint', object({ at, ...usageFields }))),
    total: named('PodHistoryTotal', object(usageFields)),
  }),
);

const workerHistory = named(
  'WorkerHistory',
  object({
    endpointId: text(),
    workerId: text(),
    ...stepFields,
    points: list(named('WorkerHistoryPoint', object({ at, ...hardwareFields }))),
    total: named('WorkerHistoryTotal', object(hardwareFields)),
  }),
);

type Values<F extends Record<string, Schema>> = { [Name in keyof F]: Static<F[Name]> };

const DESCRIPTION =
  'Berth only. Counts are exact, also after a crash. What is measured (queue, workers, CPU in cores, ' +
  'memory in bytes, GPUs as a share of 1) is sampled every 15 seconds and null where nothing was ' +
  'measured. docs/monitoring.md has an example.';

export function historyOperations({ endpoints, pods, workers, history }: AllServices): Operation[] {
  return [
    operation({
      id: 'readEndpointHistory',
      method: 'GET',
      path: '/serverless/{id}/metrics',
      tag: 'Monitoring',
      summary: 'Read what happened on an endpoint, step by step',
      description: DESCRIPTION,
      access: 'read',
      params: byId,
      query: historyQuery,
      status: 200,
      response: endpointHistory,
      errorStatuses: [404, 422],
      handle: async ({ caller, params, query }) => {
        const { id } = await endpoints.get(caller, params.id);
        const found = await history.read(caller, { kind: 'serverless', id }, query);
        return { endpointId: id, ...serialize(found, endpointValues) };
      },
    }),
    operation({
      id: 'readWorkerHistory',
      method: 'GET',
      path: '/serverless/{id}/workers/{workerId}/history',
      tag: 'Monitoring',
      summary: 'Read what a worker used, step by step',
      description: `${DESCRIPTION} The history of a worker is kept for two days, also after its end.`,
      access: 'read',
      params: object({ id: text({ minLength: 1 }), workerId: text({ minLength: 1 }) }),
      query: historyQuery,
      status: 200,
      response: workerHistory,
      errorStatuses: [404, 422],
      handle: async ({ caller, params: { id, workerId }, query }) => {
        const { workers: live } = await workers.list(caller, id);
        const found = await history.readWorker(id, workerId, query);
        const isLive = live.some(({ worker }) => worker.id === workerId);
        if (!isLive && Object.keys(found.total.data).length === 0) throw notFound('worker', workerId);
        return { endpointId: id, workerId, ...serialize(found, hardwareValues) };
      },
    }),
    operation({
      id: 'readPodHistory',
      method: 'GET',
      path: '/pods/{id}/metrics',
      tag: 'Monitoring',
      summary: 'Read what a pod used, step by step',
      description: DESCRIPTION,
      access: 'read',
      podIdParam: 'id',
      params: byId,
      query: historyQuery,
      status: 200,
      response: podHistory,
      errorStatuses: [404, 422],
      handle: async ({ caller, params, query }) => {
        const { id } = await pods.get(caller, params.id);
        const found = await history.read(caller, { kind: 'pod', id }, query);
        return { podId: id, ...serialize(found, usageValues) };
      },
    }),
  ];
}

function serialize<T>(
  { from, to, stepMs, points, total }: HistoryAnswer,
  valuesOf: (point: Pick<HistoryPoint, 'data' | 'cost'>) => T,
) {
  return {
    from: isoTime(from),
    to: isoTime(to),
    stepSeconds: stepMs / 1000,
    points: points.map((point) => ({ at: isoTime(point.start), ...valuesOf(point) })),
    total: valuesOf(total),
  };
}

function hardwareValues({ data }: Pick<HistoryPoint, 'data'>): Values<typeof hardwareFields> {
  return {
    cpu: sampledValues(data, 'cpu'),
    memory: sampledValues(data, 'memory'),
    gpu: sampledValues(data, 'gpu'),
    gpuMemory: sampledValues(data, 'gpuMemory'),
  };
}

function usageValues(point: Pick<HistoryPoint, 'data' | 'cost'>): Values<typeof usageFields> {
  return { ...hardwareValues(point), cost: point.cost };
}

function endpointValues(point: Pick<HistoryPoint, 'data' | 'cost'>): Values<typeof endpointFields> {
  const { data } = point;
  return {
    requests: countOf(data, 'requests'),
    completed: countOf(data, 'COMPLETED'),
    failed: countOf(data, 'FAILED'),
    cancelled: countOf(data, 'CANCELLED'),
    timedOut: countOf(data, 'TIMED_OUT'),
    retries: countOf(data, 'retries'),
    waitTime: percentileValues(data, 'wait'),
    runTime: percentileValues(data, 'run'),
    queued: sampledValues(data, 'queued'),
    running: sampledValues(data, 'running'),
    workers: {
      running: averageOf(data, 'workers/running'),
      idle: averageOf(data, 'workers/idle'),
      initializing: averageOf(data, 'workers/initializing'),
      throttled: averageOf(data, 'workers/throttled'),
      unhealthy: averageOf(data, 'workers/unhealthy'),
    },
    coldStarts: {
      count: countOf(data, 'start/total'),
      imageMs: averageOf(data, 'start/image'),
      startMs: averageOf(data, 'start/start'),
      connectMs: averageOf(data, 'start/connect'),
      totalMs: averageOf(data, 'start/total'),
    },
    ...usageValues(point),
  };
}

function sampledValues(data: Rollup, name: string): Static<typeof sampled> | null {
  const mean = averageOf(data, name);
  return mean === null ? null : { average: mean, max: data[name]?.[2] ?? mean };
}

function percentileValues(data: Rollup, name: 'wait' | 'run'): Static<typeof percentiles> | null {
  const of = (percent: number): number => percentileOf(data, name, percent) ?? 0;
  let [count, total] = [0, 0];
  for (const [key, value] of Object.entries(data)) {
    if (!key.startsWith(`${name}/`)) continue;
    count += value[0];
    total += value[1];
  }
  if (count === 0) return null;
  return { average: Math.round(total / count), p50: of(50), p70: of(70), p90: of(90), p98: of(98) };
}
