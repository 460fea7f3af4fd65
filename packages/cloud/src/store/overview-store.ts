import type { JobCounts } from '../domain/job-records.ts';
import type { PodStatus } from '../domain/pods/pod-record.ts';
import type { Endpoint } from '../domain/records.ts';

/** What an account has, counted: a few numbers of each endpoint, and of all pods together. */
export interface OverviewStore {
  endpoints(accountId: string): Promise<CountedEndpoint[]>;
  podCounts(accountId: string): Promise<Partial<Record<PodStatus, number>>>;
  /** Pods that ended with an error, those that did so last first. */
  failedPods(accountId: string, limit: number): Promise<FailedPod[]>;
}

export interface CountedEndpoint extends Pick<Endpoint, 'id' | 'name' | 'type' | 'workersMax'> {
  jobs: JobCounts;
}

export interface FailedPod {
  id: string;
  name: string;
  statusDetail: string | null;
}
