import type { Registry } from 'prom-client';
import type { Capacity } from '../../domain/placement/engine-capacity.ts';
import { Counter } from './prometheus-client.ts';
import { exposeReadGauges } from './read-gauges.ts';
import type { GaugeFamily, GaugeValue } from './read-gauges.ts';

/** What a data center has; undefined where its engine does not answer. */
export interface DataCenterCapacity {
  dataCenterId: string;
  capacity: Capacity | undefined;
}

/** Utilization of the GPUs that instances hold, at the last sample. */
export interface GpuUse {
  dataCenterId: string;
  gpus: number;
  /** Summed over the GPUs, each from 0 to 1. */
  util: number;
  memoryUtil: number;
}

/** The API of another machine that a data center is run through. */
export interface DataCenterConnection {
  dataCenterId: string;
  requests: number;
  cacheAgeMs: number | undefined;
}

export interface DataCenterMetricsDeps {
  isLeading(): boolean;
  connections(): DataCenterConnection[];
  capacities(): Promise<DataCenterCapacity[]>;
  gpuUse(): Iterable<GpuUse>;
}

/** Shows at /metrics what data centers have and how their GPUs are used. The leading server alone does. */
export function exposeDataCenters(
  registry: Registry,
  { isLeading, connections, capacities, gpuUse }: DataCenterMetricsDeps,
): void {
  exposeReadGauges(registry, async () => connections(), [
    {
      name: 'berth_kubernetes_cache_age_seconds',
      help: 'How old what this server knows of the pods in the cluster may be',
      labelNames: ['data_center'],
      valuesIn: (found) =>
        found.flatMap(({ dataCenterId, cacheAgeMs }) =>
          cacheAgeMs === undefined
            ? []
            : [{ labels: { data_center: dataCenterId }, value: cacheAgeMs / 1000 }],
        ),
    },
  ]);
  const requests: Counter = new Counter({
    name: 'berth_kubernetes_requests_total',
    help: 'Requests of this server to the API of the cluster, watches and logs that are followed included',
    labelNames: ['data_center'],
    registers: [registry],
    collect: () => {
      requests.reset();
      for (const connection of connections())
        requests.inc({ data_center: connection.dataCenterId }, connection.requests);
    },
  });
  exposeReadGauges(registry, async () => (isLeading() ? capacities() : []), [
    family('berth_data_center_up', '1 while the engine of the data center answers', (capacity) =>
      capacity === undefined ? 0 : 1,
    ),
    family('berth_data_center_cpu_threads', 'Threads of its processors', (capacity) => capacity?.cpu.threads),
    family('berth_data_center_memory_bytes', 'Its memory', (capacity) =>
      capacity === undefined ? undefined : capacity.memoryInGb * 1e9,
    ),
    {
      name: 'berth_data_center_gpus',
      help: 'GPUs by type, free and used',
      labelNames: ['data_center', 'gpu', 'state'],
      valuesIn: (found) => found.flatMap(gpuValues),
    },
  ]);
  exposeReadGauges(registry, async () => (isLeading() ? [...gpuUse()] : []), [
    useFamily('berth_gpu_utilization_ratio', 'How busy the GPUs that instances hold are, on average', 'util'),
    useFamily('berth_gpu_memory_ratio', 'How much of their memory is used, on average', 'memoryUtil'),
  ]);
}

function family(
  name: string,
  help: string,
  valueOf: (capacity: Capacity | undefined) => number | undefined,
): GaugeFamily<DataCenterCapacity[]> {
  return {
    name,
    help,
    labelNames: ['data_center'],
    valuesIn: (found) =>
      found.flatMap(({ dataCenterId, capacity }) => {
        const value = valueOf(capacity);
        return value === undefined ? [] : [{ labels: { data_center: dataCenterId }, value }];
      }),
  };
}

function gpuValues({ dataCenterId, capacity }: DataCenterCapacity): GaugeValue[] {
  return (capacity?.gpus ?? []).flatMap(({ gpuTypeId, total, free }) => {
    const labels = { data_center: dataCenterId, gpu: gpuTypeId };
    return [
      { labels: { ...labels, state: 'free' }, value: free },
      { labels: { ...labels, state: 'used' }, value: total - free },
    ];
  });
}

function useFamily(name: string, help: string, field: 'util' | 'memoryUtil'): GaugeFamily<GpuUse[]> {
  return {
    name,
    help,
    labelNames: ['data_center'],
    valuesIn: (found) =>
      found
        .filter(({ gpus }) => gpus > 0)
        .map((use) => ({ labels: { data_center: use.dataCenterId }, value: use[field] / use.gpus })),
  };
}
