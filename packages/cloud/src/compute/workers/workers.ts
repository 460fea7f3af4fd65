import type { Job } from '../../domain/job-records.ts';
import type { LogLine, LogQuery } from '../../domain/log-line.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { InstanceUsage } from '../../engines/instance.ts';
import { startPhases, waitedForStart, type StartPhases } from '../../domain/endpoints/start-phases.ts';
import { EndpointWorkerSet } from './endpoint-worker-set.ts';
import { jobLogLines } from './job-log-lines.ts';
import { StoredStartPhases } from './stored-start-phases.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import type { WorkerComponents, WorkerDeps } from './worker-components.ts';
import type { WorkerShards } from './worker-shards.ts';

/** The last lines of a handler may be read a little after its result. */
const LOG_SLACK_MS = 1_000;

/** What is needed of an endpoint to find its workers. */
export type EndpointRef = Pick<Endpoint, 'id' | 'type'>;

export type WorkersDeps = Pick<WorkerDeps, 'store' | 'engines' | 'clock'>;

/** What the rest of the server asks about workers. */
export class Workers {
  readonly #shards: WorkerShards;
  readonly #deps: WorkersDeps;
  readonly #startPhases: StoredStartPhases;

  constructor(shards: WorkerShards, deps: WorkersDeps) {
    this.#shards = shards;
    this.#deps = deps;
    this.#startPhases = new StoredStartPhases(deps.store);
  }

  /** The live workers of an endpoint, newest last. */
  list(endpoint: EndpointRef): TrackedWorker[] {
    return [...(this.#refreshed(endpoint)?.workers.values() ?? [])];
  }

  counts(endpoint: EndpointRef): ReturnType<EndpointWorkerSet['counts']> | undefined {
    return this.#refreshed(endpoint)?.counts();
  }

  /** The workers of all endpoints, while this server leads; also those that other servers manage and report. */
  *fleet(): Generator<{
    endpointId: string;
    counts: ReturnType<EndpointWorkerSet['counts']>;
    workers: TrackedWorker[];
  }> {
    for (const { components, isElected } of this.#shards.all) {
      const isElsewhere = this.#shards.all.length > 1 && !isElected();
      const registry = isElsewhere ? components.mirror : components.registry;
      for (const endpointId of registry.endpointIds()) {
        const counts = registry.find(endpointId)?.counts();
        if (counts !== undefined) yield { endpointId, counts, workers: registry.workersOf(endpointId) };
      }
    }
  }

  /** Why an endpoint has no worker for its jobs. */
  noWorkerReason(endpoint: Endpoint): string | undefined {
    return (this.#refreshed(endpoint) ?? new EndpointWorkerSet(endpoint.id)).reason(endpoint.workersMax, () =>
      this.#of(endpoint.id).candidates.imageProblem(endpoint),
    );
  }

  failedStarts(endpoint: EndpointRef): number {
    return this.#refreshed(endpoint)?.crashes.count ?? 0;
  }

  /**
   * The phases of the start that a job waited for; undefined if it did not wait for one. Most jobs are
   * answered without a promise, and without the store.
   */
  startPhasesOf(
    job: Pick<Job, 'endpointId' | 'workerId' | 'queuedAt'>,
  ): StartPhases | undefined | Promise<StartPhases | undefined> {
    const { endpointId, workerId } = job;
    if (workerId === null) return undefined;
    const { registry, queueHealth } = this.#of(endpointId);
    const worker = registry.findWorker(endpointId, workerId);
    if (worker !== undefined && worker.record.firstJobAt === null)
      queueHealth.refresh(worker, this.#deps.clock.now());
    const phases =
      worker === undefined ? this.#startPhases.of(endpointId, workerId) : startPhases(worker.record);
    const ifWaited = (found: StartPhases | undefined): StartPhases | undefined =>
      found !== undefined && waitedForStart(job, found) ? found : undefined;
    return phases instanceof Promise ? phases.then(ifWaited) : ifWaited(phases);
  }

  /**
   * The log of a worker that may have ended; undefined if the worker is unknown or its data center is not
   * connected.
   */
  async logs(
    endpointId: string,
    workerId: string,
    query: LogQuery,
    signal: AbortSignal,
  ): Promise<AsyncIterable<LogLine> | undefined> {
    const worker = await this.#find(endpointId, workerId);
    const engine = worker && this.#deps.engines.get(worker.dataCenterId);
    return engine?.logs(workerId, query, signal);
  }

  /** What a live worker uses now; undefined while it does not run. */
  async usage(endpointId: string, workerId: string): Promise<InstanceUsage | undefined> {
    const worker = await this.#find(endpointId, workerId);
    return worker === undefined ? undefined : this.#deps.engines.get(worker.dataCenterId)?.usage(workerId);
  }

  /** What the worker of a job wrote while it ran the job. Follows a job that still runs. */
  async *jobLogs(
    job: Pick<Job, 'endpointId' | 'id' | 'workerId' | 'takenAt' | 'endedAt'>,
    signal: AbortSignal,
  ): AsyncGenerator<LogLine> {
    const { endpointId, id, workerId, takenAt, endedAt } = job;
    if (workerId === null || takenAt === null) return;
    const query = { after: { ts: takenAt - 1 }, follow: endedAt === null };
    const lines = await this.logs(endpointId, workerId, query, signal);
    if (lines !== undefined) yield* jobLogLines(lines, id, endedAt === null ? null : endedAt + LOG_SLACK_MS);
  }

  /** The endpoint was deleted: its workers end now, and nothing of them is kept. */
  removeEndpoint(endpointId: string): Promise<void> {
    return this.#of(endpointId).removals.remove(endpointId);
  }

  #of(endpointId: string): WorkerComponents {
    return this.#shards.of(endpointId).components;
  }

  async #find(endpointId: string, workerId: string): Promise<Worker | undefined> {
    return (
      this.#of(endpointId).registry.findWorker(endpointId, workerId)?.record ??
      (await this.#deps.store.findWorker(endpointId, workerId))
    );
  }

  /**
   * Includes the heartbeats of queue workers since the last reconciliation. Load balancing workers send none.
   */
  #refreshed({ id, type }: EndpointRef): EndpointWorkerSet | undefined {
    const { components, isElected } = this.#shards.of(id);
    const { registry, mirror, queueHealth } = components;
    if (!isElected()) return mirror.find(id);
    const now = this.#deps.clock.now();
    if (type === 'QUEUE') for (const worker of registry.workersOf(id)) queueHealth.refresh(worker, now);
    return registry.find(id);
  }
}
