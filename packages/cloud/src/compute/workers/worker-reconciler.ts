import type { InstanceEngine } from '../../engines/engine.ts';
import type { LogLine } from '../../domain/log-line.ts';
import type { JobQueue } from '../../queue/job-queue.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { Job } from '../../domain/job-records.ts';
import type { Endpoint } from '../../domain/records.ts';
import type { Clock } from '../../support/clock.ts';
import type { Ids } from '../../support/ids.ts';
import type { Log } from '../../support/log.ts';
import { ReconcileQueue } from '../reconcile-queue.ts';
import { LoadBalancerWorkerHealth } from './load-balancer-worker-health.ts';
import type { ProbeResult } from './load-balancer-worker-health.ts';
import { LoadBalancerPool } from './load-balancer-pool.ts';
import { DataCenterConnections } from './data-center-connections.ts';
import { isCrashLooping, nextStartAt } from './crash-backoff.ts';
import { WorkerTermination, STOP_GRACE_MS } from './worker-termination.ts';
import { InFlightRequests } from './in-flight-requests.ts';
import { ScaleUpTrigger } from './scale-up-trigger.ts';
import { EndpointWorkerSet } from './endpoint-worker-set.ts';
import { jobLogLines } from './job-log-lines.ts';
import { WorkerLauncher } from './worker-launcher.ts';
import { endpointLoad } from './endpoint-load.ts';
import { isActive } from './tracked-worker.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import { placeWorker, reserveCapacity } from '../../domain/placement/worker-placement.ts';
import type { WorkerSpecSources } from './worker-spec-sources.ts';
import { QueueWorkerHealth } from './queue-worker-health.ts';
import { EndpointRemovals } from './endpoint-removals.ts';
import { WorkerRegistry } from './worker-registry.ts';
import { scale } from '../../domain/endpoints/worker-scaling.ts';
import { WorkerCandidates } from './worker-candidates.ts';
import { workerStartTimeoutMs } from '../../domain/endpoints/worker-start-timeout.ts';
import { LOG_RETENTION_MS } from '../../domain/limits.ts';

const TICK_MS = 500;
/** What a handler prints last is read a little after its result. */
const LOG_SLACK_MS = 1_000;
/** What is under way when the server stops has this long to come to its end. */
const CLOSE_TIMEOUT_MS = 2_000;
const DELETE_ENDED_INTERVAL_MS = 10 * 60_000;

/** What has to be known of an endpoint to ask for its workers. */
export type EndpointRef = Pick<Endpoint, 'id' | 'type'>;

export interface WorkerReconcilerDeps extends WorkerSpecSources {
  store: WorkerStore;
  queue: JobQueue;
  /** By data center. Others may come, and are connected then. */
  engines: ReadonlyMap<string, InstanceEngine>;
  endpoint(id: string): Promise<Endpoint | undefined>;
  /** Asks a load balanced worker how it is. */
  probe(host: string, port: number, path: string): Promise<ProbeResult>;
  clock: Clock;
  ids: Ids;
  log: Log;
}

/**
 * Makes what is wanted into what is: looks at each endpoint that needs it, asks the scaler how
 * many workers there should be, and starts or ends some. Every step is written down before
 * it is taken and can be taken twice, so a restart goes on where the last one stopped, with
 * the workers that are there.
 */
export class WorkerReconciler {
  /** What the gateway asks. */
  readonly pool: LoadBalancerPool;
  readonly #deps: WorkerReconcilerDeps;
  readonly #registry: WorkerRegistry;
  readonly #reconcileQueue: ReconcileQueue;
  readonly #earlyLooks: ScaleUpTrigger;
  readonly #termination: WorkerTermination;
  readonly #removals: EndpointRemovals;
  readonly #connections: DataCenterConnections;
  readonly #sites: WorkerCandidates;
  readonly #launcher: WorkerLauncher;
  readonly #queueHealth: QueueWorkerHealth;
  readonly #balancedHealth: LoadBalancerWorkerHealth;
  #timer: NodeJS.Timeout | undefined;
  #forgotAt = 0;
  #closed = false;

  constructor(deps: WorkerReconcilerDeps) {
    const { store, log } = deps;
    const registry = new WorkerRegistry(store, log);
    const reconcileQueue = new ReconcileQueue({
      reconcile: (endpointId) => this.#look(endpointId),
      isEnabled: (endpointId) => this.#connections.isOpen && !this.#removals.isRemoving(endpointId),
      onError: (error, endpointId) => {
        if (!this.#closed)
          log.error({ err: error, endpointId }, 'an endpoint could not be looked after; trying again');
      },
    });
    const requests = new InFlightRequests();
    const inFlight = (endpointId: string, workerId: string): number => requests.count(endpointId, workerId);
    const termination = new WorkerTermination({
      ...deps,
      inFlight,
      registry: registry,
      reconcileQueue: reconcileQueue,
    });
    const removals = new EndpointRemovals({
      ...deps,
      registry: registry,
      reconcileQueue: reconcileQueue,
      termination: termination,
    });
    const connections = new DataCenterConnections({
      ...deps,
      registry: registry,
      reconcileQueue: reconcileQueue,
      termination: termination,
    });
    const balancedHealth = new LoadBalancerWorkerHealth({
      ...deps,
      inFlight,
      registry: registry,
      termination: termination,
    });
    const sites = new WorkerCandidates({ ...deps, connections, specSources: deps });
    const launcher = new WorkerLauncher({
      ...deps,
      registry: registry,
      termination: termination,
      removals,
      loadBalancerHealth: balancedHealth,
      specSources: deps,
    });
    this.#deps = deps;
    this.#registry = registry;
    this.#reconcileQueue = reconcileQueue;
    this.#earlyLooks = new ScaleUpTrigger(registry, reconcileQueue, TICK_MS);
    this.#termination = termination;
    this.#removals = removals;
    this.#connections = connections;
    this.#sites = sites;
    this.#launcher = launcher;
    this.#queueHealth = new QueueWorkerHealth({ ...deps, registry: registry, termination: termination });
    this.#balancedHealth = balancedHealth;
    this.pool = new LoadBalancerPool({
      ...deps,
      requests,
      registry: registry,
      reconcileQueue: reconcileQueue,
      termination: termination,
      removals,
      candidates: sites,
      launcher,
    });
  }

  /** Takes up the workers that are there, removes instances that nobody knows, and begins. */
  async start(): Promise<void> {
    const { queue } = this.#deps;
    if (this.#closed) return;
    queue.onJobsQueued = (endpointId) => this.#earlyLooks.onJobQueued(endpointId);
    queue.onWorkerRefresh = (endpointId, workerId) => this.#refresh(endpointId, workerId);
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    await this.#connections.open();
  }

  /** A data center has come: its workers are looked after from now on. */
  connectDataCenter(dataCenterId: string): Promise<void> {
    return this.#connections.connect(dataCenterId);
  }

  /** Something about this endpoint changed: look at it now. */
  wake(endpointId: string): void {
    this.#reconcileQueue.enqueue(endpointId);
  }

  /** The endpoint is gone: its workers end now, and nothing of them stays. */
  removeEndpoint(endpointId: string): Promise<void> {
    return this.#removals.remove(endpointId);
  }

  /** The workers that live, the newest last. */
  workers(endpoint: EndpointRef): TrackedWorker[] {
    return [...(this.#seen(endpoint)?.workers.values() ?? [])];
  }

  counts(endpoint: EndpointRef): ReturnType<EndpointWorkerSet['counts']> | undefined {
    return this.#seen(endpoint)?.counts();
  }

  /** Why an endpoint has no worker for its jobs. */
  noWorkerReason(endpoint: Endpoint): string | undefined {
    return (this.#seen(endpoint) ?? new EndpointWorkerSet(endpoint.id)).reason(endpoint.workersMax, () =>
      this.#sites.imageProblem(endpoint),
    );
  }

  engine(dataCenterId: string): InstanceEngine | undefined {
    return this.#deps.engines.get(dataCenterId);
  }

  /** What the worker of a job wrote while it had it; follows one that still runs. */
  async *jobLogs(
    job: Pick<Job, 'endpointId' | 'id' | 'workerId' | 'takenAt' | 'endedAt'>,
    signal: AbortSignal,
  ): AsyncGenerator<LogLine> {
    const { endpointId, id, workerId, takenAt, endedAt } = job;
    if (workerId === null || takenAt === null) return;
    const worker =
      this.#registry.findWorker(endpointId, workerId)?.record ??
      (await this.#deps.store.findWorker(endpointId, workerId));
    const engine = worker === undefined ? undefined : this.engine(worker.dataCenterId);
    if (engine === undefined) return;
    const lines = engine.logs(workerId, { after: { ts: takenAt - 1 }, follow: endedAt === null }, signal);
    yield* jobLogLines(lines, id, endedAt === null ? null : endedAt + LOG_SLACK_MS);
  }

  /** Another server looks after them now. */
  pause(): void {
    clearInterval(this.#timer);
    this.#connections.close();
    this.#deps.queue.onJobsQueued = () => undefined;
    this.#deps.queue.onWorkerRefresh = () => undefined;
    this.#registry.clear();
  }

  /** Lets go. Workers go on. */
  async close(): Promise<void> {
    this.#closed = true;
    this.pause();
    const late = new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref());
    await Promise.race([
      Promise.all([this.#reconcileQueue.whenAllDone(), this.#termination.waitUntilDone()]),
      late,
    ]);
    await Promise.all([...this.#deps.engines.values()].map((engine) => engine.close()));
  }

  #tick(): void {
    for (const endpointId of this.#registry.endpointIds()) this.wake(endpointId);
    const { store, clock, log } = this.#deps;
    const now = clock.now();
    if (now - this.#forgotAt < DELETE_ENDED_INTERVAL_MS) return;
    this.#forgotAt = now;
    // The log of a worker is found by its record, so both are kept as long.
    store
      .deleteEndedWorkers(now - LOG_RETENTION_MS)
      .catch((error: unknown) =>
        log.warn({ err: error }, 'workers that ended long ago could not be forgotten'),
      );
  }

  /** A handler asked that its worker be replaced. */
  #refresh(endpointId: string, workerId: string): void {
    const member = this.#registry.findWorker(endpointId, workerId);
    if (member !== undefined) void this.#termination.drain(member, null);
  }

  /** With what was heard of the workers of a queue since the last look: whoever asks sees it at once. Of others the queue hears nothing that would tell how they are. */
  #seen({ id, type }: EndpointRef): EndpointWorkerSet | undefined {
    const now = this.#deps.clock.now();
    if (type === 'QUEUE')
      for (const member of this.#registry.workersOf(id)) this.#queueHealth.refresh(member, now);
    return this.#registry.find(id);
  }

  async #look(endpointId: string): Promise<void> {
    const { queue, clock } = this.#deps;
    const endpoint = await this.#deps.endpoint(endpointId);
    if (endpoint === undefined) return this.#removals.finishRemoval(endpointId);
    const fleet = this.#registry.getOrCreate(endpointId);
    const now = clock.now();
    await Promise.all([...fleet.workers.values()].map((member) => this.#check(member, endpoint, now)));
    this.#dismiss(fleet, ({ record }) => record.version < endpoint.version);
    const load = await endpointLoad(endpoint, fleet.demand, queue, now);
    if (this.#removals.isRemoving(endpointId)) return;
    const { start, stop } = scale(endpoint, load, fleet.scalerInput(), now);
    this.#dismiss(fleet, ({ record }) => stop.includes(record.id));
    if (start > 0) await this.#startSome(fleet, endpoint, start, now);
    else fleet.clearPlacementFailure();
    fleet.resetCrashesIfRecovered(load.waiting, now);
    if (
      fleet.workers.size === 0 &&
      load.waiting === 0 &&
      endpoint.workersMin === 0 &&
      fleet.crashes.count === 0
    )
      this.#registry.removeEndpoint(endpointId);
  }

  /** What became of a worker since the last look. */
  async #check(member: TrackedWorker, endpoint: Endpoint, now: number): Promise<void> {
    if (endpoint.type === 'LOAD_BALANCER') await this.#balancedHealth.check(member, endpoint, now);
    else await this.#queueHealth.check(member, now);
    const limit = workerStartTimeoutMs(endpoint.env);
    const { record, runningSince } = member;
    // While the image is being fetched, it may take as long as it takes.
    if (record.state !== 'starting' || runningSince === null || now - runningSince <= limit) return;
    await this.#termination.handleExit(member, {
      reason: `it was not ready within ${Math.round(limit / 1000)} s`,
    });
    await this.engine(record.dataCenterId)?.remove(record.id, STOP_GRACE_MS);
  }

  #dismiss({ workers }: EndpointWorkerSet, isUnwanted: (member: TrackedWorker) => boolean): void {
    for (const member of workers.values()) {
      if (isActive(member) && isUnwanted(member)) void this.#termination.drain(member, null);
    }
  }

  async #startSome(fleet: EndpointWorkerSet, endpoint: Endpoint, wanted: number, now: number): Promise<void> {
    if (now < nextStartAt(fleet.crashes)) return;
    // A crash loop is tried one at a time.
    const count = isCrashLooping(fleet.crashes) ? 1 : wanted;
    const sites = await this.#sites.find(endpoint);
    if (this.#removals.isRemoving(endpoint.id)) return;
    for (let started = 0; started < count; started += 1) {
      const placement = placeWorker(endpoint, sites);
      if ('refused' in placement) return fleet.setPlacementFailure(wanted - started, placement.refused);
      reserveCapacity(sites, endpoint, placement.place);
      this.#launcher.launch(endpoint, placement.place);
    }
    fleet.clearPlacementFailure();
  }
}
