import type { Caller } from '../../domain/caller.ts';
import type { PodStatus } from '../../domain/pods/pod-record.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { CountedEndpoint, FailedPod, OverviewStore } from '../../store/overview-store.ts';

/** Of an answer; the counts are of all. */
export const MAX_OVERVIEW_ENDPOINTS = 1_000;
export const MAX_OVERVIEW_PODS = 100;

export interface WorkerCounts {
  idle: number;
  initializing: number;
  ready: number;
  running: number;
  throttled: number;
  unhealthy: number;
}

export interface ActiveEndpoint extends CountedEndpoint {
  workers: WorkerCounts;
}

export interface Overview {
  endpoints: number;
  jobs: { inQueue: number; inProgress: number };
  workers: WorkerCounts;
  /** Those with jobs or workers, the longest queue first. */
  active: ActiveEndpoint[];
  pods: { total: number; byStatus: Partial<Record<PodStatus, number>>; failed: FailedPod[] };
}

export interface AccountOverviewDeps {
  store: OverviewStore;
  /** The workers of an endpoint; undefined if it never had any. */
  workerCounts(endpoint: Pick<Endpoint, 'id' | 'type'>): WorkerCounts | undefined;
}

/** What runs in an account, and what has failed, however much it has. */
export class AccountOverview {
  readonly #deps: AccountOverviewDeps;

  constructor(deps: AccountOverviewDeps) {
    this.#deps = deps;
  }

  async get({ accountId, mayReadJobs }: Caller): Promise<Overview> {
    const { store, workerCounts } = this.#deps;
    const [endpoints, byStatus, failed] = await Promise.all([
      store.endpoints(accountId),
      store.podCounts(accountId),
      store.failedPods(accountId, MAX_OVERVIEW_PODS),
    ]);
    const active = endpoints
      .filter(({ id }) => mayReadJobs?.(id) !== false)
      .map((endpoint) => ({ ...endpoint, workers: workerCounts(endpoint) ?? NO_WORKERS }))
      .filter(({ jobs, workers }) => isAnyAboveZero(jobs) || isAnyAboveZero(workers))
      .sort((left, right) => unfinished(right) - unfinished(left));
    const sum = (pick: (endpoint: ActiveEndpoint) => number): number =>
      active.reduce((total, endpoint) => total + pick(endpoint), 0);
    return {
      endpoints: endpoints.length,
      jobs: { inQueue: sum(({ jobs }) => jobs.inQueue), inProgress: sum(({ jobs }) => jobs.inProgress) },
      workers: {
        idle: sum(({ workers }) => workers.idle),
        initializing: sum(({ workers }) => workers.initializing),
        ready: sum(({ workers }) => workers.ready),
        running: sum(({ workers }) => workers.running),
        throttled: sum(({ workers }) => workers.throttled),
        unhealthy: sum(({ workers }) => workers.unhealthy),
      },
      active: active.slice(0, MAX_OVERVIEW_ENDPOINTS),
      pods: {
        total: Object.values(byStatus).reduce((total, count) => total + count, 0),
        byStatus,
        failed,
      },
    };
  }
}

const NO_WORKERS: WorkerCounts = {
  idle: 0,
  initializing: 0,
  ready: 0,
  running: 0,
  throttled: 0,
  unhealthy: 0,
};

function unfinished({ jobs }: CountedEndpoint): number {
  return jobs.inQueue + jobs.inProgress;
}

function isAnyAboveZero(counts: object): boolean {
  return Object.values(counts).some((count: number) => count > 0);
}
