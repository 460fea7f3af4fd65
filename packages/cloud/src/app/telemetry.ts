import type { Registry } from 'prom-client';
import { activityOf } from '../compute/workers/tracked-worker.ts';
import { HistorySampler } from '../telemetry/history/history-sampler.ts';
import type { SampledInstance } from '../telemetry/history/history-sampler.ts';
import { exposeDataCenters } from '../telemetry/metrics/data-center-metrics.ts';
import type { DataCenterCapacity, DataCenterConnection } from '../telemetry/metrics/data-center-metrics.ts';
import { exposeFleet } from '../telemetry/metrics/fleet-metrics.ts';
import type { CountedWorkers } from '../telemetry/metrics/fleet-metrics.ts';
import type { AppContext } from './app-context.ts';
import type { Compute } from './compute.ts';
import type { Engines } from './engines.ts';
import type { Storage } from './storage.ts';

/** Beyond this many queues, the shortest are left out of /metrics. */
const MAX_READ_QUEUES = 20_000;

/** What is measured in the background, while this server leads. */
export interface Telemetry {
  /** Shows what jobs, workers and pods do at /metrics. */
  expose(registry: Registry): void;
  start(): void;
  pause(): void;
  close(): Promise<void>;
}

export function createTelemetry(
  { config, log, clock, events }: AppContext,
  { store }: Storage,
  engines: Engines,
  compute: Compute,
): Telemetry {
  const instances = async (): Promise<SampledInstance[]> => {
    const instance = (resourceId: string, id: string, dataCenterId: string): SampledInstance => ({
      resourceId,
      ...(id !== resourceId && { workerId: id }),
      dataCenterId,
      usage: async () => engines.byDataCenter.get(dataCenterId)?.usage(id),
    });
    const workers = [...compute.workers.fleet()].flatMap((endpoint) =>
      endpoint.workers.map(({ record }) => instance(endpoint.endpointId, record.id, record.dataCenterId)),
    );
    const pods = (await store.pods.listActive())
      .filter(({ status }) => status === 'RUNNING')
      .map(({ id, dataCenterId }) => instance(id, id, dataCenterId));
    return [...workers, ...pods];
  };
  const sampler = new HistorySampler({
    store: store.history,
    workerCounts: () => compute.workers.fleet(),
    instances,
    events,
    clock,
    keepDays: config.history.days,
    log,
  });
  events.subscribe('endpoint.removed', ({ endpointId, source }) => {
    if (source === 'other-server') return;
    store.history
      .remove(endpointId)
      .catch((error: unknown) => log.warn({ err: error, endpointId }, 'the history could not be deleted'));
  });
  const shards = store.workerShards?.election;
  let isLeading = false;
  return {
    expose: (registry) => {
      exposeDataCenters(registry, {
        isLeading: () => isLeading,
        connections: () => readConnections(engines),
        capacities: () => readCapacities(engines),
        gpuUse: () => sampler.gpuUse(),
      });
      exposeFleet({
        registry,
        events,
        isLeading: () => isLeading,
        workerShards: () => shards?.heldCount ?? Number(isLeading),
        clock,
        queueDepths: () => store.jobs.queueDepths(MAX_READ_QUEUES),
        workers: () => countedWorkers(compute),
        pods: () => store.pods.listActive(),
      });
    },
    start: () => {
      isLeading = true;
      sampler.start();
    },
    pause: () => {
      isLeading = false;
      sampler.stop();
    },
    close: () => sampler.close(),
  };
}

function readCapacities(engines: Engines): Promise<DataCenterCapacity[]> {
  return Promise.all(
    [...engines.byDataCenter].map(async ([dataCenterId, engine]) => ({
      dataCenterId,
      capacity: await engine.capacity().catch(() => undefined),
    })),
  );
}

function readConnections(engines: Engines): DataCenterConnection[] {
  return [...engines.byDataCenter].flatMap(([dataCenterId, engine]) => {
    const connection = engine.connection?.();
    return connection === undefined ? [] : [{ dataCenterId, ...connection }];
  });
}

function* countedWorkers(compute: Compute): Generator<CountedWorkers> {
  for (const { counts, workers } of compute.workers.fleet()) {
    const counted = workers.map((worker) => ({
      dataCenterId: worker.record.dataCenterId,
      state: activityOf(worker),
    }));
    const unhealthy = counted.filter(({ state }) => state === 'unhealthy').length;
    yield { throttled: counts.throttled, crashing: counts.unhealthy - unhealthy, workers: counted };
  }
}
