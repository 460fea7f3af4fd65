import type { Worker, Release } from '../domain/endpoints/worker-record.ts';

/** What the fleet keeps: which workers live, so that a restart takes them up again, and every release. */
export interface WorkerStore {
  /**
   * Adds a worker that has not started yet, or writes what became of it. One that was removed stays removed.
   */
  saveWorker(worker: Worker): Promise<void>;
  findWorker(endpointId: string, id: string): Promise<Worker | undefined>;
  /** Those that have not ended, of one endpoint or of all. */
  listLiveWorkers(endpointId?: string): Promise<Worker[]>;
  /** Those of an endpoint that have ended and are not forgotten. */
  listEndedWorkers(endpointId: string): Promise<Worker[]>;
  /** Forgets workers that ended before this time. */
  deleteEndedWorkers(endedBefore: number): Promise<Worker[]>;
  /** Endpoints that need looking after: a minimum of workers, living workers, or waiting jobs. */
  listActiveEndpoints(): Promise<string[]>;
  /** Endpoints with waiting jobs. */
  listQueuedEndpoints(): Promise<string[]>;
  /** Newest first. */
  listReleases(endpointId: string, page: { limit: number; before?: number }): Promise<Release[]>;
  findRelease(endpointId: string, version: number): Promise<Release | undefined>;
  /** Forgets the workers of an endpoint. Those that have not ended did so at this instant. */
  removeWorkers(endpointId: string, at: number): Promise<void>;
}
