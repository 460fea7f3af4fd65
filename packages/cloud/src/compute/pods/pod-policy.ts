import { LOG_RETENTION_MS } from '../../domain/limits.ts';
import type { AuditEntry } from '../../domain/records.ts';
import type { InstanceEngine } from '../../engines/engine.ts';
import type { Instance, InstanceEvent, InstanceHandle } from '../../engines/instance.ts';
import type { CloudEventBus } from '../../domain/events.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import { requestStop, requestTermination } from '../../domain/pods/pod-transitions.ts';
import type { PodStore } from '../../store/pod-store.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import { RESYNC_MS } from '../reconcile-settings.ts';
import { Reconciler, type ReconcilePolicy } from '../reconciler.ts';
import { PodInstances } from './pod-instances.ts';
import type { PodSpecSources } from './pod-spec-sources.ts';
import { nextPodStep } from '../../domain/pods/pod-step.ts';
import type { PodVolumeDisks } from './pod-volume-disks.ts';

export interface PodDeps extends PodSpecSources {
  store: PodStore;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  volumeDisks: PodVolumeDisks;
  events: CloudEventBus;
  clock: Clock;
  log: Log;
}

export function createPodReconciler(deps: PodDeps): Reconciler<PodPolicy> {
  return new Reconciler(deps, (reconciler) => new PodPolicy(deps, reconciler));
}

/**
 * Reconciles one pod: compares what its owner wants with its instance, and takes the step that
 * follows. Pods in their desired state cost nothing.
 */
class PodPolicy implements ReconcilePolicy {
  readonly kind = 'pod';
  readonly idField = 'podId';
  readonly #deps: PodDeps;
  readonly #reconciler: Reconciler;
  readonly #instances: PodInstances;
  /**
   * Instances found when their engine was connected, until their pods are reconciled. A crash may have kept
   * their handle from being stored.
   */
  readonly #found = new Map<string, Instance>();
  /** When the next pod has to be stopped or terminated. */
  #nextDueAt = 0;
  #hasRemovedOrphanedDisks = false;

  constructor(deps: PodDeps, reconciler: Reconciler) {
    this.#deps = deps;
    this.#reconciler = reconciler;
    this.#instances = new PodInstances({
      ...deps,
      specSources: deps,
      wake: (podId) => reconciler.wake(podId),
      isClosed: () => reconciler.isClosed,
    });
  }

  stop(): void {
    this.#found.clear();
    this.#instances.clear();
    this.#nextDueAt = 0;
    this.#hasRemovedOrphanedDisks = false;
  }

  onChangedWhileReconciling(podId: string): void {
    void this.#instances.abortStart(podId);
  }

  listUnreconciled(): Promise<Iterable<string>> {
    return this.#deps.store.listUnreconciled();
  }

  async cleanUp(now: number): Promise<void> {
    const { store, engines, log } = this.#deps;
    for (const { id, dataCenterId } of await store.listActive())
      if (!engines.has(dataCenterId))
        log.warn({ podId: id, dataCenterId }, 'the data center of a pod is not connected');
    // The log of a pod is found by its record, so both are kept equally long.
    const deleting = store.deleteTerminated(now - LOG_RETENTION_MS);
    await Promise.all([deleting, this.#cleanUpDisks()]);
  }

  async #cleanUpDisks(): Promise<void> {
    const { volumeDisks, engines } = this.#deps;
    if (this.#hasRemovedOrphanedDisks) return volumeDisks.retryRemovals();
    await volumeDisks.removeOrphans([...new Set(engines.values())].flatMap(({ volumes }) => volumes ?? []));
    this.#hasRemovedOrphanedDisks = true;
  }

  async adopt(
    engine: InstanceEngine,
    instances: ReadonlyMap<string, Instance>,
    isCurrent: () => boolean,
  ): Promise<Iterable<string>> {
    const { store, engines } = this.#deps;
    const active = await store.listActive();
    if (!isCurrent()) return [];
    const unreconciled: string[] = [];
    for (const pod of active.filter(({ dataCenterId }) => engines.get(dataCenterId) === engine)) {
      const instance = instances.get(pod.id);
      if (instance !== undefined) this.#instances.add(pod.id);
      if (nextPodStep(pod, instance) === 'nothing') continue;
      if (instance !== undefined) this.#found.set(pod.id, instance);
      unreconciled.push(pod.id);
    }
    return unreconciled;
  }

  /** A stopped pod keeps its last instance, for its log. */
  async isOrphan({ id, status }: Instance, engine: InstanceEngine): Promise<boolean> {
    const pod = await this.#deps.store.findInAnyAccount(id);
    if (pod === undefined) return true;
    const owner = this.#deps.engines.get(pod.dataCenterId);
    if (pod.wanted !== 'terminated' && (status === 'exited' || owner === undefined)) return false;
    return owner !== engine || !this.#instances.has(id);
  }

  onInstanceExited({ id }: InstanceEvent): void {
    if (this.#instances.has(id)) this.#reconciler.wake(id);
  }

  async reconcile(podId: string): Promise<void> {
    const pod = await this.#deps.store.findInAnyAccount(podId);
    const engine = pod && this.#deps.engines.get(pod.dataCenterId);
    if (pod === undefined || engine === undefined || !this.#reconciler.isConnected(pod.dataCenterId)) return;
    for (const at of [pod.stopAfter, pod.terminateAfter])
      this.#nextDueAt = Math.min(this.#nextDueAt, at ?? Infinity);
    const instance = await this.#instanceOf(pod, engine);
    const step = nextPodStep(pod, instance);
    this.#found.delete(podId);
    await this.#instances.execute(step, pod, engine, instance);
  }

  async #instanceOf(pod: Pod, engine: InstanceEngine): Promise<Instance | undefined> {
    const known =
      pod.handle === null ? undefined : await engine.adopt(JSON.parse(pod.handle) as InstanceHandle);
    return known ?? this.#found.get(pod.id);
  }

  /** Requests the stop or termination of the pods whose `stopAfter` or `terminateAfter` has come. */
  async listDue(now: number): Promise<Iterable<string>> {
    if (now < this.#nextDueAt) return [];
    const { store, events, log } = this.#deps;
    this.#nextDueAt = now + RESYNC_MS;
    const due = await store.listDue(now);
    for (const pod of due) {
      try {
        await this.#endDuePod(pod, now);
        events.publish('pod.changed', { podId: pod.id, source: 'reconciler' });
      } catch (error) {
        log.warn({ err: error, podId: pod.id }, 'a pod could not be ended at its time; trying again');
      }
    }
    this.#nextDueAt = (await store.nextDueAt()) ?? Infinity;
    return due.map(({ id }) => id);
  }

  async #endDuePod(pod: Pod, now: number): Promise<void> {
    const isTermination = pod.terminateAfter !== null && pod.terminateAfter <= now;
    const audit: AuditEntry = {
      at: now,
      accountId: pod.accountId,
      keyId: null,
      interface: 'system',
      requestId: '',
      action: isTermination ? 'delete' : 'stop',
      resource: 'pod',
      resourceId: pod.id,
      changes: [],
    };
    try {
      await this.#deps.store.change(pod.accountId, pod.id, {}, (current) => ({
        record: isTermination
          ? requestTermination(current, now)
          : requestStop(current, now, 'Stopping at its given instant'),
        audit,
      }));
    } catch (error) {
      if (!(error instanceof BerthError) || error.code !== 'state') throw error;
    }
  }
}
