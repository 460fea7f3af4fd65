import { LOG_RETENTION_MS } from '../../domain/limits.ts';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { Instance, InstanceEvent } from '../../engines/instance.ts';
import { scale } from '../../domain/endpoints/worker-scaling.ts';
import { workerStartTimeoutMs } from '../../domain/endpoints/worker-start-timeout.ts';
import { placeWorker, reserveCapacity } from '../../domain/placement/worker-placement.ts';
import type { Endpoint } from '../../domain/records.ts';
import { describeExit } from '../crash-summary.ts';
import { IDLE_CHECKS_PER_TICK, STOP_GRACE_MS } from '../reconcile-settings.ts';
import { Reconciler, type ReconcilePolicy } from '../reconciler.ts';
import { isCrashLooping, nextStartAt } from './crash-backoff.ts';
import { endpointLoad } from './endpoint-load.ts';
import type { EndpointWorkerSet } from './endpoint-worker-set.ts';
import { isActive, type TrackedWorker } from './tracked-worker.ts';
import { adoptWorkers, isOrphanedWorker } from './worker-adoption.ts';
import { createWorkerComponents, type WorkerComponents, type WorkerDeps } from './worker-components.ts';

export function createWorkerReconciler(deps: WorkerDeps): Reconciler<WorkerPolicy> {
  return new Reconciler(
    deps,
    (reconciler) => new WorkerPolicy(deps, createWorkerComponents(deps, reconciler)),
  );
}

/**
 * Reconciles the workers of an endpoint: checks their health, drains those of earlier versions, asks
 * the scaler how many there should be, and starts or drains workers. A worker is recorded before its
 * engine is asked for it.
 */
export class WorkerPolicy implements ReconcilePolicy {
  readonly kind = 'worker';
  readonly idField = 'endpointId';
  readonly canAdoptAgain = true;
  readonly components: WorkerComponents;
  readonly #deps: WorkerDeps;
  #unsubscribe: (() => void)[] = [];

  constructor(deps: WorkerDeps, components: WorkerComponents) {
    this.#deps = deps;
    this.components = components;
  }

  start(): void {
    const { events } = this.#deps;
    const { registry, termination, scaleUpTrigger, pool } = this.components;
    this.#unsubscribe = [
      events.subscribe('jobs.queued', ({ endpointId }) => {
        if (!this.#owns(endpointId)) return;
        registry.find(endpointId)?.onJobQueued();
        scaleUpTrigger.onJobQueued(endpointId);
      }),
      events.subscribe('worker.refresh-requested', ({ endpointId, workerId }) => {
        const worker = registry.findWorker(endpointId, workerId);
        if (worker !== undefined) void termination.drain(worker, null);
      }),
      events.subscribe('endpoint.demand', ({ endpointId, server, ...demand }) => {
        if (this.#owns(endpointId)) pool.reportRemoteDemand(endpointId, server, demand);
      }),
    ];
  }

  stop(): void {
    for (const unsubscribe of this.#unsubscribe.splice(0)) unsubscribe();
    this.components.registry.clear();
  }

  /** Its owner changed the endpoint, or deployed it again. */
  onEndpointChanged(endpointId: string): void {
    this.components.registry.find(endpointId)?.onEndpointChanged();
  }

  whenIdle(): Promise<void> {
    return this.components.termination.waitUntilDone();
  }

  #owns(endpointId: string): boolean {
    return this.#deps.owns?.(endpointId) !== false;
  }

  isSuspended(endpointId: string): boolean {
    return !this.#owns(endpointId) || this.components.removals.isRemoving(endpointId);
  }

  /**
   * Reconciling reads the load from the store. Idle endpoints are left out, and checked again only after a
   * while: a few at a time, so that those with work do not wait for them.
   */
  async listDue(now: number): Promise<Iterable<string>> {
    const { registry } = this.components;
    const due: string[] = [];
    const idle: string[] = [];
    for (const endpointId of registry.endpointIds()) {
      if (!this.#isIdle(endpointId, now)) due.push(endpointId);
      else if (registry.find(endpointId)?.isIdleCheckDue(now) === true) idle.push(endpointId);
    }
    return [...due, ...idle.slice(0, IDLE_CHECKS_PER_TICK)];
  }

  async listUnreconciled(): Promise<Iterable<string>> {
    const { store } = this.#deps;
    const [active, queued] = await Promise.all([store.listActiveEndpoints(), store.listQueuedEndpoints()]);
    const waiting = new Set(queued);
    return this.#withoutIdle(active, (endpointId) => waiting.has(endpointId));
  }

  #withoutIdle(endpointIds: readonly string[], isWaiting = (_: string): boolean => false): string[] {
    const now = this.#deps.clock.now();
    return endpointIds.filter((endpointId) => isWaiting(endpointId) || !this.#isIdle(endpointId, now));
  }

  #isIdle(endpointId: string, now: number): boolean {
    const { registry, queueHealth } = this.components;
    const workerSet = registry.find(endpointId);
    if (workerSet?.isIdle !== true) return false;
    const areAlive = [...workerSet.workers.values()].every((worker) => queueHealth.isKnownAlive(worker, now));
    // Their heartbeats may just have said that they are not idle any more.
    return areAlive && workerSet.isIdle;
  }

  /** The log of a worker is found by its record, so both are kept equally long. */
  async cleanUp(now: number): Promise<void> {
    await this.#deps.store.deleteEndedWorkers(now - LOG_RETENTION_MS);
  }

  async adopt(
    engine: InstanceEngine,
    instances: ReadonlyMap<string, Instance>,
    isCurrent: () => boolean,
  ): Promise<Iterable<string>> {
    const { store, engines } = this.#deps;
    const deps = { ...this.components, engines };
    await adoptWorkers(engine, instances, await store.listLiveWorkers(), deps, isCurrent);
    return isCurrent() ? this.#withoutIdle(await store.listActiveEndpoints()) : [];
  }

  async isOrphan(instance: Instance, engine: InstanceEngine): Promise<boolean> {
    // Those of other endpoints are managed by other servers.
    if (!this.#owns(instance.labels['endpoint'] ?? '')) return false;
    return isOrphanedWorker(instance, engine, { ...this.components, engines: this.#deps.engines });
  }

  onInstanceExited({ id, exitCode, signal, at, disrupted }: InstanceEvent): void {
    const worker = this.components.registry.findWorkerByInstance(id);
    if (worker === undefined) return;
    this.components.termination
      .handleExit(worker, {
        exitCode,
        reason: disrupted ?? describeExit({ exitCode, signal }),
        at,
        disrupted: disrupted !== undefined,
      })
      .catch((error: unknown) =>
        this.#deps.log.error({ err: error, workerId: id }, 'the end of a worker could not be recorded'),
      );
  }

  async reconcile(endpointId: string): Promise<void> {
    const { queue, clock } = this.#deps;
    const { registry, removals, candidates, requests, termination } = this.components;
    const endpoint = await this.#deps.endpoint(endpointId);
    if (endpoint === undefined) return removals.finishRemoval(endpointId);
    const workerSet = registry.getOrCreate(endpointId);
    if (workerSet.setVersion(endpoint.version) && endpoint.workersMax > 0) candidates.prepareImage(endpoint);
    const now = clock.now();
    await Promise.all([...workerSet.workers.values()].map((worker) => this.#check(worker, endpoint, now)));
    this.#drain(workerSet, ({ record }) => record.version < endpoint.version);
    const { queuings } = workerSet;
    const load = await endpointLoad(
      endpoint,
      workerSet.demand + requests.remoteDemand(endpointId),
      queue,
      now,
    );
    if (removals.isRemoving(endpointId)) return;
    // This server lost the lead meanwhile, and may have it again: then this set misses what was adopted since.
    if (registry.find(endpointId) !== workerSet) return;
    const { start, stop } = scale(endpoint, load, workerSet.scalerInput(), now);
    this.#drain(workerSet, ({ record }) => stop.includes(record.id));
    const active = [...workerSet.workers.values()].filter(isActive).length;
    const missing = Math.min(start, endpoint.workersMax - active - termination.countUnrecorded(endpointId));
    if (missing > 0) await this.#startCounted(workerSet, endpoint, missing, now);
    else workerSet.clearPlacementFailure();
    workerSet.resetCrashesIfRecovered(load.waiting, now);
    const hasLoad = load.waiting + load.overdue + load.inProgress > 0 || endpoint.type === 'LOAD_BALANCER';
    workerSet.setIdle(hasLoad ? undefined : { queuings, workersMin: endpoint.workersMin, since: now });
    if (
      workerSet.workers.size === 0 &&
      load.waiting === 0 &&
      endpoint.workersMin === 0 &&
      workerSet.crashes.count === 0
    )
      registry.removeEndpoint(endpointId);
  }

  async #check(worker: TrackedWorker, endpoint: Endpoint, now: number): Promise<void> {
    const { loadBalancerHealth, queueHealth, termination } = this.components;
    if (endpoint.type === 'LOAD_BALANCER') await loadBalancerHealth.check(worker, endpoint, now);
    else await queueHealth.check(worker, now);
    const limit = workerStartTimeoutMs(endpoint.env);
    const { record, runningSince } = worker;
    // The time to pull the image is not limited.
    if (record.state !== 'starting' || runningSince === null || now - runningSince <= limit) return;
    await termination.handleExit(worker, {
      reason: `it was not ready within ${Math.round(limit / 1000)} s`,
    });
    await this.#deps.engines.get(record.dataCenterId)?.remove(record.id, STOP_GRACE_MS);
  }

  #drain({ workers }: EndpointWorkerSet, isUnwanted: (worker: TrackedWorker) => boolean): void {
    for (const worker of workers.values())
      if (isActive(worker) && isUnwanted(worker)) void this.components.termination.drain(worker, null);
  }

  /** Where other servers start workers of the account, too, they wait until these are stored and count. */
  async #startCounted(
    workerSet: EndpointWorkerSet,
    endpoint: Endpoint,
    missing: number,
    now: number,
  ): Promise<void> {
    const { startingWorkers } = this.#deps;
    if (startingWorkers === undefined) return this.#startWorkers(workerSet, endpoint, missing, now);
    return startingWorkers(endpoint.accountId, async () => {
      // It may have lost the shard while it waited.
      if (this.components.registry.find(endpoint.id) !== workerSet) return;
      await this.#startWorkers(workerSet, endpoint, missing, now);
      await this.components.registry.whenSaved();
    });
  }

  async #startWorkers(
    workerSet: EndpointWorkerSet,
    endpoint: Endpoint,
    missing: number,
    now: number,
  ): Promise<void> {
    const { candidates, removals, launcher } = this.components;
    if (now < nextStartAt(workerSet.crashes)) return;
    // In a crash loop, one worker at a time is tried.
    const wanted = isCrashLooping(workerSet.crashes) ? 1 : missing;
    const { allowed: count, refusal } = (await this.#deps.allowedWorkers?.(endpoint, wanted)) ?? {
      allowed: wanted,
    };
    const available = await candidates.find(endpoint);
    if (removals.isRemoving(endpoint.id)) return;
    for (let started = 0; started < count; started += 1) {
      const placement = placeWorker(endpoint, available);
      if ('refused' in placement) return workerSet.setPlacementFailure(missing - started, placement.refused);
      reserveCapacity(available, endpoint, placement.place);
      launcher.launch(endpoint, placement.place);
    }
    if (refusal === undefined) workerSet.clearPlacementFailure();
    else workerSet.setPlacementFailure(missing - count, refusal.message);
  }
}
