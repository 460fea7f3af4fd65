import type { FieldChange, Endpoint, OwnedRecord } from '../records.ts';

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
  /** When its image was on the machine, with the environment that it needs. */
  imageReadyAt: number | null;
  /** When its instance began to run; null until then. */
  startedAt: number | null;
  /** When its first heartbeat came. */
  readyAt: number | null;
  /** When it got its first job or request. */
  firstJobAt: number | null;
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
