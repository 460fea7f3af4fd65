import type { Metric, Registry } from 'prom-client';
import { Counter, Histogram } from './prometheus-client.ts';
import type { CloudEventBus } from '../../domain/events.ts';
import { POD_CRASH_KINDS, WORKER_CRASH_KINDS } from '../../domain/events.ts';
import { POD_STATUSES } from '../../domain/pods/pod-record.ts';
import type { PodStatus } from '../../domain/pods/pod-record.ts';
import type { QueueDepth } from '../../store/job-store.ts';
import type { Clock } from '../../support/clock.ts';
import { startPhaseDurations } from '../start-phase-durations.ts';
import { EndpointJobMetrics } from './endpoint-job-metrics.ts';
import type { MetricFamily } from './endpoint-job-metrics.ts';
import { exposeReadGauges } from './read-gauges.ts';
import type { GaugeValue } from './read-gauges.ts';

/** The workers of one endpoint. */
export interface CountedWorkers {
  /** How many workers could not be placed. */
  throttled: number;
  /** How many are missing because they crash at once. */
  crashing: number;
  workers: Iterable<{ dataCenterId: string; state: string | undefined }>;
}

export interface FleetMetricsDeps {
  registry: Registry;
  events: CloudEventBus;
  clock: Clock;
  isLeading(): boolean;
  /** How many shards of workers this server manages. */
  workerShards(): number;
  queueDepths(): Promise<QueueDepth[]>;
  workers(): Iterable<CountedWorkers>;
  pods(): Promise<{ dataCenterId: string; status: PodStatus }[]>;
}

const WORKER_STATES = ['running', 'idle', 'initializing', 'throttled', 'unhealthy'] as const;
const COLD_START_BOUNDS_SECONDS = [0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600];

/**
 * What jobs, workers and pods do, at /metrics. Counters are of this server. What all servers see alike
 * (queues, workers, pods) is exposed by the leader alone, so that sums over servers are right; it is read
 * when Prometheus asks.
 */
export function exposeFleet({
  registry,
  events,
  clock,
  isLeading,
  workerShards,
  queueDepths,
  workers,
  pods,
}: FleetMetricsDeps): void {
  const jobs = new EndpointJobMetrics(events);
  for (const family of jobs.families) registerFamily(registry, family);
  exposeReadGauges(registry, async () => isLeading(), [
    {
      name: 'berth_leader',
      help: '1 on the server that manages workers and pods',
      labelNames: [],
      valuesIn: (leads) => [{ labels: {}, value: leads ? 1 : 0 }],
    },
  ]);
  exposeReadGauges(registry, async () => workerShards(), [
    {
      name: 'berth_worker_shards',
      help: 'How many shards of workers this server manages',
      labelNames: [],
      valuesIn: (held) => [{ labels: {}, value: held }],
    },
  ]);
  exposeQueues(registry, jobs.labels, clock, async () => (isLeading() ? queueDepths() : []));
  exposeReadGauges(registry, async () => (isLeading() ? workerValues(workers()) : []), [
    {
      name: 'berth_workers',
      help: 'Workers by state; those that could not be placed are in no data center',
      labelNames: ['state', 'data_center'],
      valuesIn: (values) => values,
    },
  ]);
  exposeReadGauges(registry, async () => (isLeading() ? podValues(await pods()) : []), [
    {
      name: 'berth_pods',
      help: 'Pods by status',
      labelNames: ['state', 'data_center'],
      valuesIn: (values) => values,
    },
  ]);
  exposeStarts(registry, events);
}

/** Every state has a value in each data center with workers, so that a series does not end when it is 0. */
function workerValues(endpoints: Iterable<CountedWorkers>): GaugeValue[] {
  const values: GaugeValue[] = [];
  const add = (state: string, dataCenter: string, value: number): number =>
    values.push({ labels: { state, data_center: dataCenter }, value });
  const dataCenters = new Set<string>();
  add('throttled', '', 0);
  add('unhealthy', '', 0);
  for (const { throttled, crashing, workers } of endpoints) {
    add('throttled', '', throttled);
    add('unhealthy', '', crashing);
    for (const { dataCenterId, state } of workers) {
      dataCenters.add(dataCenterId);
      if (state !== undefined) add(state, dataCenterId, 1);
    }
  }
  for (const dataCenter of dataCenters) for (const state of WORKER_STATES) add(state, dataCenter, 0);
  return values;
}

function podValues(pods: readonly { dataCenterId: string; status: PodStatus }[]): GaugeValue[] {
  const value = (status: PodStatus, dataCenter: string, count: number): GaugeValue => ({
    labels: { state: status.toLowerCase(), data_center: dataCenter },
    value: count,
  });
  const dataCenters = new Set(pods.map(({ dataCenterId }) => dataCenterId));
  return [
    ...[...dataCenters].flatMap((id) => POD_STATUSES.map((status) => value(status, id, 0))),
    ...pods.map(({ dataCenterId, status }) => value(status, dataCenterId, 1)),
  ];
}

function exposeQueues(
  registry: Registry,
  jobs: Pick<EndpointJobMetrics['labels'], 'labelOf'>,
  clock: Clock,
  depths: () => Promise<QueueDepth[]>,
): void {
  const labelNames = ['endpoint'];
  const values = (found: QueueDepth[], valueOf: (depth: QueueDepth) => number): GaugeValue[] =>
    found.map((depth) => ({
      labels: { endpoint: jobs.labelOf(depth.endpointId) },
      value: valueOf(depth),
    }));
  exposeReadGauges(registry, depths, [
    {
      name: 'berth_jobs_queued',
      help: 'Jobs that wait',
      labelNames,
      valuesIn: (found) => values(found, ({ queued }) => queued),
    },
    {
      name: 'berth_jobs_running',
      help: 'Jobs that workers hold',
      labelNames,
      valuesIn: (found) => values(found, ({ running }) => running),
    },
    {
      name: 'berth_job_oldest_wait_seconds',
      help: 'How long the first job of the queue has waited',
      labelNames,
      valuesIn: (found) => {
        const oldest = new Map<string, number>();
        for (const { endpointId, oldestQueuedAt } of found) {
          const endpoint = jobs.labelOf(endpointId);
          const wait = oldestQueuedAt === null ? 0 : Math.max(0, clock.now() - oldestQueuedAt) / 1000;
          oldest.set(endpoint, Math.max(wait, oldest.get(endpoint) ?? 0));
        }
        return [...oldest].map(([endpoint, value]) => ({ labels: { endpoint }, value }));
      },
    },
  ]);
}

/** Starts and crashes of workers and pods. */
function exposeStarts(registry: Registry, events: CloudEventBus): void {
  const coldStarts = new Histogram({
    name: 'berth_cold_start_seconds',
    help: 'How long the phases of worker starts took: image, start, connect, and all of it',
    labelNames: ['phase'],
    buckets: COLD_START_BOUNDS_SECONDS,
    registers: [registry],
  });
  const starts = new Counter({
    name: 'berth_worker_starts_total',
    help: 'Workers that were started and reported that they are ready',
    labelNames: ['data_center'],
    registers: [registry],
  });
  events.subscribe('worker.ready', ({ worker }) => {
    starts.inc({ data_center: worker.dataCenterId });
    for (const [phase, milliseconds] of startPhaseDurations(worker))
      coldStarts.observe({ phase }, milliseconds / 1000);
  });
  const crashes = new Counter({
    name: 'berth_worker_crashes_total',
    help:
      'Workers that ended by themselves: they did not start, were not ready in time, exited, ' +
      'or were killed',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of WORKER_CRASH_KINDS) crashes.inc({ reason }, 0);
  events.subscribe('worker.crashed', ({ kind }) => crashes.inc({ reason: kind }));
  const podStarts = new Counter({
    name: 'berth_pod_starts_total',
    help: 'Pods that were started, with those that were started again',
    labelNames: ['data_center'],
    registers: [registry],
  });
  events.subscribe('pod.started', ({ dataCenterId }) => podStarts.inc({ data_center: dataCenterId }));
  const podCrashes = new Counter({
    name: 'berth_pod_crashes_total',
    help: 'Pods that did not start, or ended by themselves with an error',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of POD_CRASH_KINDS) podCrashes.inc({ reason }, 0);
  events.subscribe('pod.crashed', ({ kind }) => podCrashes.inc({ reason: kind }));
}

/** The registry calls `get` and reads `name`, which is all that this has of a metric. */
function registerFamily(registry: Registry, { name, help, type, values }: MetricFamily): void {
  const metric = { name, get: async () => ({ name, help, type, aggregator: 'sum', values: values() }) };
  registry.registerMetric(metric as unknown as Metric);
}
