import { sampleEndpoint } from '../../resources/endpoints/endpoint.fixture.ts';
import { newWorker } from './new-worker.ts';
import type { WorkerPlacement } from '../../domain/placement/worker-placement.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

export const samplePlacement: WorkerPlacement = {
  dataCenterId: 'LOCAL-1',
  gpuTypeId: null,
  gpuCount: 0,
  cpu: 2,
  memoryInGb: 4,
  volumeId: undefined,
};

/** A worker that is being started, for tests. */
export function sampleWorker(id: string, over: Partial<Worker> = {}): Worker {
  return { ...newWorker(id, sampleEndpoint, samplePlacement, 1), ...over };
}
