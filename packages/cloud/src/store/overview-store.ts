import type { JobCounts } from '../domain/job-records.ts';
import type { PodStatus } from '../domain/pods/pod-record.ts';
import type { Endpoint } from '../domain/records.ts';

/** What an account has, counted: a few numbers of each endpoint, and of all pods together. */
export interface OverviewStore {
  endpoints(accountId: string): Promise<CountedEndpoint[]>;
  podCounts(accountId: string): Promise<Partial<Record<PodStatus, number>>>;
  /** Pods that ended with an error, those that did so last first. */
  failedPods(accountId: string, limit: number): Promise<FailedPod[]>;
  /** What counts against limits: of one account, or of all. */
  reserved(accountId?: string): Promise<ReservedResources>;
  /** The workers and pods whose logs the account may still read. */
  instances(accountId: string): Promise<OwnedInstance[]>;
}

export interface ReservedResources {
  pods: number;
  /** The most workers that the endpoints may have. */
  workersMax: number;
  /** Of pods that are to run, and of live workers. */
  gpus: number;
  volumeGb: number;
}

export interface OwnedInstance {
  id: string;
  dataCenterId: string;
  /** Null while it exists. */
  endedAt: number | null;
}

export interface CountedEndpoint extends Pick<Endpoint, 'id' | 'name' | 'type' | 'workersMax'> {
  jobs: JobCounts;
  /** Whether a job that failed is still stored: their number counts those of all time. */
  failedStored: boolean;
}

export interface FailedPod {
  id: string;
  name: string;
  statusDetail: string | null;
}
