import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import type { InstanceUsage } from '../../engines/instance.ts';
import type { Endpoint } from '../../domain/records.ts';
import { notFound } from '../../support/errors.ts';
import type { Caller } from '../../domain/caller.ts';
import { InstanceUsageCache } from '../instance-usage-cache.ts';
import { auditEntry } from '../resource-context.ts';
import type { ResourceContext } from '../resource-context.ts';
import type { Endpoints } from './endpoints.ts';
import { rollbackInput } from './endpoint-release.ts';
import type { Release, Worker } from '../../domain/endpoints/worker-record.ts';

const ENDED_WORKERS_SHOWN = 10;

export const WORKER_STATUSES = ['RUNNING', 'IDLE', 'INITIALIZING', 'THROTTLED', 'UNHEALTHY'] as const;
export type WorkerStatus = (typeof WORKER_STATUSES)[number];

export interface WorkerView {
  worker: Worker;
  status: WorkerStatus;
  /** Created from an earlier version of the endpoint. */
  stale: boolean;
  /** It uses the fast worker channel. */
  accelerated: boolean;
  uptimeSeconds: number;
  /** The progress of its start, or why it is unhealthy; null otherwise. */
  reason: string | null;
}

export interface Rollout {
  inProgress: boolean;
  workersOnLatest: number;
  workersTotal: number;
  percentOnLatest: number;
}

/** A worker that has not ended. */
export interface LiveWorker {
  record: Worker;
  busy: boolean;
  accelerated: boolean;
  /** Null while it is healthy. */
  unhealthyReason: string | null;
  /** The last progress message about its start. */
  progress: string | null;
}

/** The live workers; implemented by compute/. */
export interface LiveWorkers {
  list(endpoint: Endpoint): readonly LiveWorker[];
  /** Why an endpoint has no worker for its jobs. */
  noWorkerReason(endpoint: Endpoint): string | undefined;
  /** How many workers in a row crashed or could not be started. */
  failedStarts(endpoint: Endpoint): number;
  /** The log of a worker that may have ended; undefined if there is none. */
  logs(
    endpointId: string,
    workerId: string,
    query: LogQuery,
    signal: AbortSignal,
  ): Promise<AsyncIterable<LogLine> | undefined>;
  /** What a live worker uses now; undefined while it does not run. */
  usage(endpointId: string, workerId: string): Promise<InstanceUsage | undefined>;
}

/** What one worker uses now, and what it may use. */
export interface WorkerUsage {
  at: number;
  busy: boolean;
  vcpuCount: number;
  /** Null while it does not run. */
  usage: InstanceUsage | null;
}

export interface EndpointWorkersDeps {
  endpoints: Endpoints;
  liveWorkers: LiveWorkers;
}

/** Workers and releases of an endpoint, as its owner sees them. */
export class EndpointWorkers {
  readonly #context: ResourceContext;
  readonly #endpoints: Endpoints;
  readonly #liveWorkers: LiveWorkers;
  readonly #usages = new InstanceUsageCache();

  constructor(context: ResourceContext, { endpoints, liveWorkers }: EndpointWorkersDeps) {
    this.#context = context;
    this.#endpoints = endpoints;
    this.#liveWorkers = liveWorkers;
  }

  /** `reason` says why no worker can take jobs now; null if one can. */
  async list(
    caller: Caller,
    endpointId: string,
  ): Promise<{ endpoint: Endpoint; workers: WorkerView[]; reason: string | null; failedStarts: number }> {
    const endpoint = await this.#endpoints.get(caller, endpointId);
    return {
      endpoint,
      workers: this.viewsOf(endpoint),
      reason: this.#liveWorkers.noWorkerReason(endpoint) ?? null,
      failedStarts: this.#liveWorkers.failedStarts(endpoint),
    };
  }

  /** The last workers that ended, newest first: their logs are kept for a while. */
  async listEnded(caller: Caller, endpointId: string): Promise<Worker[]> {
    await this.#endpoints.get(caller, endpointId);
    return (await this.#context.store.workers.listEndedWorkers(endpointId))
      .sort((one, other) => (other.endedAt ?? 0) - (one.endedAt ?? 0))
      .slice(0, ENDED_WORKERS_SHOWN);
  }

  /**
   * The workers of an endpoint. Does not read the endpoint again, so a list does not fail if the endpoint is
   * deleted at the same time.
   */
  viewsOf(endpoint: Endpoint): WorkerView[] {
    return this.#liveWorkers.list(endpoint).map((worker) => this.#view(worker, endpoint));
  }

  /** The log of a worker, also of one that has ended. */
  async logs(
    caller: Caller,
    endpointId: string,
    workerId: string,
    query: LogQuery,
    signal: AbortSignal,
  ): Promise<AsyncIterable<LogLine>> {
    await this.#endpoints.get(caller, endpointId);
    const lines = await this.#liveWorkers.logs(endpointId, workerId, query, signal);
    if (lines === undefined) throw notFound('worker', workerId);
    return lines;
  }

  /** The log of a live worker of any endpoint of the account. */
  async logsById(
    caller: Caller,
    workerId: string,
    query: LogQuery,
    signal: AbortSignal,
  ): Promise<AsyncIterable<LogLine>> {
    const endpoint = (await this.#endpoints.list(caller)).find((candidate) =>
      this.#liveWorkers.list(candidate).some(({ record }) => record.id === workerId),
    );
    if (endpoint === undefined) throw notFound('worker', workerId);
    return this.logs(caller, endpoint.id, workerId, query, signal);
  }

  /** What a live worker uses now. */
  async usage(caller: Caller, endpointId: string, workerId: string): Promise<WorkerUsage> {
    const { record, busy } = await this.#findLive(caller, endpointId, workerId);
    const usage = await this.#usages.read(workerId, () => this.#liveWorkers.usage(endpointId, workerId));
    return { at: this.#context.clock.now(), busy, vcpuCount: record.vcpuCount, usage: usage ?? null };
  }

  /**
   * Stops a worker: it gets no more jobs, and ends when it has finished those that it has. The leading server
   * does it, whichever server was asked.
   */
  async stop(caller: Caller, endpointId: string, workerId: string): Promise<void> {
    await this.#findLive(caller, endpointId, workerId);
    // Nothing else is written: the worker ends later, where the leading server manages it.
    const changes = [{ field: 'endpointId', to: endpointId }];
    await this.#context.store.audit.record(
      auditEntry(this.#context, caller, 'stop', 'worker', workerId, changes),
    );
    this.#context.events.publish('worker.refresh-requested', { endpointId, workerId, source: 'request' });
  }

  async #findLive(caller: Caller, endpointId: string, workerId: string): Promise<LiveWorker> {
    const endpoint = await this.#endpoints.get(caller, endpointId);
    const worker = this.#liveWorkers.list(endpoint).find(({ record }) => record.id === workerId);
    if (worker === undefined) throw notFound('worker', workerId);
    return worker;
  }

  async releases(
    caller: Caller,
    endpointId: string,
    page: { limit: number; before?: number },
  ): Promise<{
    endpoint: Endpoint;
    releases: Release[];
    rollout: Rollout;
    workersOn(version: number): number;
  }> {
    const { endpoint, workers } = await this.list(caller, endpointId);
    const workersOn = (version: number): number =>
      workers.filter(({ worker }) => worker.version === version).length;
    const [workersOnLatest, workersTotal] = [workersOn(endpoint.version), workers.length];
    return {
      endpoint,
      releases: await this.#context.store.workers.listReleases(endpointId, page),
      rollout: {
        inProgress: workersOnLatest < workersTotal,
        workersOnLatest,
        workersTotal,
        percentOnLatest: workersTotal === 0 ? 100 : Math.round((100 * workersOnLatest) / workersTotal),
      },
      workersOn,
    };
  }

  /** Restores the settings of an earlier release. This creates a new release. */
  async rollback(caller: Caller, endpointId: string, version: number): Promise<Endpoint> {
    await this.#endpoints.get(caller, endpointId);
    const release = await this.#context.store.workers.findRelease(endpointId, version);
    if (release === undefined) throw notFound('release', String(version));
    return this.#endpoints.update(caller, endpointId, {
      ...rollbackInput(release.endpoint),
      rollbackVersion: version,
    });
  }

  #view(
    { record, busy, accelerated, unhealthyReason, progress }: LiveWorker,
    endpoint: Endpoint,
  ): WorkerView {
    const status =
      unhealthyReason !== null
        ? 'UNHEALTHY'
        : record.state === 'starting'
          ? 'INITIALIZING'
          : busy
            ? 'RUNNING'
            : 'IDLE';
    const uptimeSeconds = Math.max(0, Math.floor((this.#context.clock.now() - record.createdAt) / 1000));
    return {
      worker: record,
      status,
      stale: record.version < endpoint.version,
      accelerated,
      uptimeSeconds,
      reason: unhealthyReason ?? (record.state === 'starting' ? progress : null),
    };
  }
}
