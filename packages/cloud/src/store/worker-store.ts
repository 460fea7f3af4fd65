import type { FieldChange, Endpoint, OwnedRecord } from '../domain/records.ts';

/** What the fleet keeps: which workers live, so that a restart takes them up again, and every release. */
export interface WorkerStore {
  /** Adds a worker or writes what became of it. */
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
  /** Newest first. */
  listReleases(endpointId: string, page: { limit: number; before?: number }): Promise<Release[]>;
  findRelease(endpointId: string, version: number): Promise<Release | undefined>;
  /** Everything of an endpoint, whose workers ended at this instant. */
  removeEndpoint(endpointId: string, at: number): Promise<void>;
}

export type WorkerState = 'starting' | 'ready' | 'leaving' | 'ended';

/** One running copy of an endpoint's container. */
export interface Worker extends OwnedRecord {
  endpointId: string;
  /** The version of the endpoint that it was made from. */
  version: number;
  dataCenterId: string;
  image: string;
  gpuTypeId: string | null;
  gpuCount: number;
  /** Where it has no GPU. */
  cpuFlavorId: string | null;
  vcpuCount: number;
  containerDisk: number;
  /** Of the endpoint that it was made from. */
  templateId: string | null;
  state: WorkerState;
  /** What its engine needs to find it again; null until it was started. */
  handle: string | null;
  /** When its instance began to run; null until then. */
  startedAt: number | null;
  /** When it was first heard of. */
  readyAt: number | null;
  endedAt: number | null;
  exitCode: number | null;
  /** Why it ended, where that is worth saying. */
  reason: string | null;
}

/** One version of an endpoint's configuration. */
export interface Release {
  endpointId: string;
  version: number;
  id: string;
  accountId: string;
  createdAt: number;
  /** What it changed. Values of the environment are named, not kept here. */
  changes: FieldChange[];
  /** The endpoint as it was then. */
  endpoint: Endpoint;
}
