import { Counter, Gauge, Histogram } from 'prom-client';
import type { Metric, Registry } from 'prom-client';
import type { CloudEventBus } from '../../domain/events.ts';
import { WORKER_CRASH_KINDS } from '../../domain/events.ts';
import { POD_STATUSES } from '../../domain/pods/pod-record.ts';
import type { PodStatus } from '../../domain/pods/pod-record.ts';
import type { QueueDepth } from '../../store/history-store.ts';
import { startPhaseDurations } from '../start-phase-durations.ts';
import { EndpointJobMetrics } from './endpoint-job-metrics.ts';
import type { MetricFamily } from './endpoint-job-metrics.ts';

export interface FleetMetricsDeps {
  registry: Registry;
  events: CloudEventBus;
  isLeading(): boolean;
  queueDepths(): Promise<QueueDepth[]>;
  workerCounts(): Iterable<{ counts: Readonly<Record<string, number>> }>;
  podStatuses(): Promise<PodStatus[]>;
}

const WORKER_STATES = ['running', 'idle', 'initializing', 'throttled', 'unhealthy'] as const;
const COLD_START_BOUNDS_SECONDS = [0.1, 0.3, 1, 3, 10, 30, 60, 120, 300, 600];

/**
 * What jobs, workers and pods do, at /metrics. Counters are of this server. What all servers see alike (queues, workers, pods)
 * is told by the leading one alone, so that sums over servers are right; it is read when Prometheus asks.
 */
export function exposeFleet({
  registry,
  events,
  isLeading,
  queueDepths,
  workerCounts,
  podStatuses,
}: FleetMetricsDeps): void {
  const jobs = new EndpointJobMetrics(events);
  for (const { name } of jobs.families()) registerFamily(registry, name, () => jobs.families());
  const registers = [registry];
  const leader: Gauge = new Gauge({
    name: 'berth_leader',
    help: '1 on the server that manages workers and pods',
    registers,
    collect: (): void => leader.set(isLeading() ? 1 : 0),
  });
  exposeQueues(registry, jobs, async () => (isLeading() ? queueDepths() : []));
  const workers = new Gauge({
    name: 'berth_workers',
    help: 'Workers by state',
    labelNames: ['state'],
    registers,
    collect: () => {
      workers.reset();
      if (!isLeading()) return;
      for (const state of WORKER_STATES) workers.set({ state }, 0);
      for (const { counts } of workerCounts())
        for (const state of WORKER_STATES) workers.inc({ state }, counts[state] ?? 0);
    },
  });
  const pods = new Gauge({
    name: 'berth_pods',
    help: 'Pods by status',
    labelNames: ['state'],
    registers,
    collect: async () => {
      pods.reset();
      if (!isLeading()) return;
      for (const status of POD_STATUSES) pods.set({ state: status.toLowerCase() }, 0);
      for (const status of await podStatuses()) pods.inc({ state: status.toLowerCase() });
    },
  });
  exposeStarts(registry, events);
}

function exposeQueues(
  registry: Registry,
  jobs: EndpointJobMetrics,
  depths: () => Promise<QueueDepth[]>,
): void {
  const gauge = (name: string, help: string, valueOf: (depth: QueueDepth) => number): void => {
    const exposed = new Gauge({
      name,
      help,
      labelNames: ['endpoint'],
      registers: [registry],
      collect: async () => {
        const found = await depths();
        exposed.reset();
        for (const depth of found) exposed.inc({ endpoint: jobs.labelOf(depth.endpointId) }, valueOf(depth));
      },
    });
  };
  gauge('berth_jobs_queued', 'Jobs that wait', ({ queued }) => queued);
  gauge('berth_jobs_running', 'Jobs that workers hold', ({ running }) => running);
}

/** Starts and crashes of workers. */
function exposeStarts(registry: Registry, events: CloudEventBus): void {
  const coldStarts = new Histogram({
    name: 'berth_cold_start_seconds',
    help: 'How long the phases of worker starts took: image, start, connect, and all of it',
    labelNames: ['phase'],
    buckets: COLD_START_BOUNDS_SECONDS,
    registers: [registry],
  });
  events.subscribe('worker.ready', ({ worker }) => {
    for (const [phase, milliseconds] of startPhaseDurations(worker))
      coldStarts.observe({ phase }, milliseconds / 1000);
  });
  const crashes = new Counter({
    name: 'berth_worker_crashes_total',
    help: 'Workers that ended without being told to: they did not start, were not ready in time, exited, or were killed',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of WORKER_CRASH_KINDS) crashes.inc({ reason }, 0);
  events.subscribe('worker.crashed', ({ kind }) => crashes.inc({ reason: kind }));
}

/** The registry calls `get` and reads `name`, which is all that this has of a metric. */
function registerFamily(registry: Registry, name: string, families: () => MetricFamily[]): void {
  const metric = {
    name,
    get: async () => ({ aggregator: 'sum', ...families().find((family) => family.name === name) }),
  };
  registry.registerMetric(metric as unknown as Metric);
}
