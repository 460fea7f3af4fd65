import { sampleEndpoint } from '../resources/endpoints/endpoint.sample.ts';
import type { Worker } from '../store/fleet.ts';
import { newWorker } from './new-worker.ts';
import type { Place } from './placement.ts';

export const samplePlace: Place = {
  dataCenterId: 'LOCAL-1',
  gpuTypeId: null,
  gpuCount: 0,
  cpu: 2,
  memoryInGb: 4,
  volumeId: undefined,
};

/** A worker that is being started, for tests. */
export function sampleWorker(id: string, over: Partial<Worker> = {}): Worker {
  return { ...newWorker(id, sampleEndpoint, samplePlace, 1), ...over };
}
