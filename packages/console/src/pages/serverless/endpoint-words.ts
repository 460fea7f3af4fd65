import type { Endpoint } from '../../api/types.ts';

export function hardwareOf({ gpu, cpu }: Pick<Endpoint, 'gpu' | 'cpu'>): string {
  if (gpu !== null) {
    const names = [...(gpu.types ?? []), ...(gpu.pools ?? [])].join(', ');
    return `${gpu.count ?? 1} × ${names === '' ? 'any GPU' : names}`;
  }
  return cpu?.map(({ vcpuCount, memory }) => `${vcpuCount} vCPU, ${memory} GB`).join(' or ') ?? 'CPU';
}

export function scalingOf({ scaling }: Pick<Endpoint, 'scaling'>): string {
  if (scaling.type === 'QUEUE_DELAY')
    return `one more worker when a job waits for ${String(scaling['queueDelay'])} s`;
  if (scaling.type === 'REQUEST_COUNT')
    return `a worker for every ${String(scaling['requestCount'] ?? scaling['requestsPerWorker'] ?? '')} requests`;
  return scaling.type;
}
