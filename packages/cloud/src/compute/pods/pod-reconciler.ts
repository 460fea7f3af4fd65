import type { InstanceEngine } from '../../engines/engine.ts';
import type { Instance, InstanceEvent, InstanceHandle } from '../../engines/instance.ts';
import { requestStop, requestTermination } from '../../domain/pods/pod-transitions.ts';
import type { PodStore } from '../../store/pod-store.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import { ReconcileQueue } from '../reconcile-queue.ts';
import { PodInstances } from './pod-instances.ts';
import type { PodSpecSources } from './pod-spec-sources.ts';
import { nextPodStep } from './pod-step.ts';
import type { PodVolumeDisks } from './pod-volume-disks.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

const TICK_MS = 500;
/** How often those are looked at again that are not settled: a failure may pass, and a wake-up may be lost. */
const RESYNC_MS = 5_000;
/** As long as engines keep the logs of what was removed. */
const KEEP_TERMINATED_MS = 7 * 24 * 3_600_000;
/** How often what is left of terminated pods is looked after. */
const CLEANUP_INTERVAL_MS = 10 * 60_000;
/** What is under way may end while Berth closes, but not for long: the next one goes on with it. */
const CLOSE_TIMEOUT_MS = 1_000;

export interface PodReconcilerDeps extends PodSpecSources {
  store: PodStore;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  volumeDisks: PodVolumeDisks;
  /** A pod has changed: whoever waits for that is to be told. */
  onChanged(podId: string): void;
  clock: Clock;
  log: Log;
}

/**
 * Makes what is wanted of each pod into what is. It looks at a pod when something happened to it:
 * its owner asked for something, its instance ended, or an instant has come. Pods that rest cost
 * nothing. What a look finds to be due, `PodInstances` does. Every step can be taken twice, so a restart
 * goes on where the last one stopped, with the instances that are there.
 */
export class PodReconciler {
  readonly #deps: PodReconcilerDeps;
  readonly #reconcileQueue: ReconcileQueue;
  readonly #instances: PodInstances;
  /** Instances that were there at the start, until they are taken up. */
  readonly #found = new Map<string, Instance>();
  readonly #met = new Set<InstanceEngine>();
  /** Of these, those that have not answered yet. */
  readonly #unreached = new Set<InstanceEngine>();
  readonly #unwatch: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #nextDue = Infinity;
  #syncedAt = 0;
  #tidiedAt = 0;
  #leading = false;
  #closed = false;

  constructor(deps: PodReconcilerDeps) {
    this.#deps = deps;
    this.#reconcileQueue = new ReconcileQueue({
      reconcile: (podId) => this.#look(podId),
      isEnabled: () => this.#leading && !this.#closed,
      onError: (error, podId) => {
        if (!this.#closed)
          deps.log.warn({ err: error, podId }, 'a pod could not be looked after; trying again');
      },
    });
    this.#instances = new PodInstances({
      ...deps,
      specSources: deps,
      wake: (podId) => this.poke(podId),
      isClosed: () => this.#closed,
    });
  }

  /** Takes up the pods that are there, removes instances that nobody knows, and begins. */
  async start(): Promise<void> {
    const { store, engines } = this.#deps;
    this.#leading = true;
    for (const engine of new Set(engines.values())) this.#meet(engine);
    await this.#reachEngines();
    // Whoever closes meanwhile takes the store along.
    if (this.#closed || !this.#leading) return;
    this.#nextDue = (await store.nextDueAt()) ?? Infinity;
    if (this.#closed || !this.#leading) return;
    this.#tidy(this.#deps.volumeDisks.removeOrphans());
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** An engine has come to serve this data center. */
  async connectDataCenter(dataCenterId: string): Promise<void> {
    const engine = this.#deps.engines.get(dataCenterId);
    if (engine === undefined || !this.#leading || this.#met.has(engine)) return;
    this.#meet(engine);
    await this.#reachEngines();
  }

  /** Something about this pod changed: look at it now. */
  poke(podId: string): void {
    if (this.#closed || !this.#leading) return;
    if (this.#reconcileQueue.isRunning(podId)) void this.#instances.abortStart(podId);
    this.#reconcileQueue.enqueue(podId);
  }

  /** Some changes may not have been told: look at every pod that is not settled. */
  resync(): void {
    if (this.#closed || !this.#leading) return;
    this.#syncedAt = this.#deps.clock.now();
    this.#deps.store.listUnreconciled().then(
      (ids) => ids.forEach((id) => this.poke(id)),
      (error: unknown) =>
        this.#closed || this.#deps.log.warn({ err: error }, 'pods could not be looked for; trying again'),
    );
  }

  /** Another server looks after them now. */
  pause(): void {
    clearInterval(this.#timer);
    for (const unwatch of this.#unwatch.splice(0)) unwatch();
    for (const kept of [this.#found, this.#met, this.#unreached]) kept.clear();
    this.#instances.clear();
    this.#leading = false;
  }

  /** Lets go. Pods go on. */
  async close(): Promise<void> {
    this.#closed = true;
    this.pause();
    const late = new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref());
    await Promise.race([this.#reconcileQueue.whenAllDone(), late]);
  }

  #tick(): void {
    const now = this.#deps.clock.now();
    if (now >= this.#nextDue)
      void this.#runDue(now).catch((error: unknown) =>
        this.#deps.log.warn({ err: error }, 'pods whose time has come could not be ended; trying again'),
      );
    if (now - this.#syncedAt >= RESYNC_MS) {
      this.resync();
      if (this.#unreached.size > 0)
        void this.#reachEngines().catch((error: unknown) =>
          this.#deps.log.warn({ err: error }, 'pods could not be taken up; trying again'),
        );
    }
    if (now - this.#tidiedAt < CLEANUP_INTERVAL_MS) return;
    this.#tidiedAt = now;
    this.#tidy(this.#deps.volumeDisks.retryRemovals());
    this.#tidy(this.#deps.store.deleteTerminated(now - KEEP_TERMINATED_MS));
  }

  /** Nobody waits for this, and what fails is tried another time. */
  #tidy(work: Promise<void>): void {
    work.catch(
      (error: unknown) =>
        this.#closed ||
        this.#deps.log.warn({ err: error }, 'what is left of terminated pods could not be looked after'),
    );
  }

  #onEvent({ id, status }: InstanceEvent): void {
    if (status === 'exited' && this.#instances.has(id)) this.poke(id);
  }

  // Taking up what is there.

  #meet(engine: InstanceEngine): void {
    this.#met.add(engine);
    this.#unreached.add(engine);
    this.#unwatch.push(engine.watch((event) => this.#onEvent(event)));
  }

  async #reachEngines(): Promise<void> {
    const { store, engines } = this.#deps;
    const active = await store.listActive();
    for (const engine of [...this.#unreached]) {
      try {
        const instances = new Map(
          (await engine.list())
            .filter(({ labels }) => labels['kind'] === 'pod')
            .map((instance): [string, Instance] => [instance.id, instance]),
        );
        if (this.#closed || !this.#leading) return;
        this.#unreached.delete(engine);
        for (const pod of active.filter(({ dataCenterId }) => engines.get(dataCenterId) === engine)) {
          this.#takeUp(pod, instances.get(pod.id));
          instances.delete(pod.id);
        }
        await this.#removeStrays(engine, instances);
      } catch (error) {
        if (!(error instanceof BerthError) || error.code !== 'unavailable') throw error;
        this.#deps.log.warn({ err: error }, 'an engine does not answer; its pods are taken up when it does');
      }
    }
    for (const pod of active.filter(({ dataCenterId }) => !engines.has(dataCenterId)))
      this.#deps.log.warn(
        { podId: pod.id, dataCenterId: pod.dataCenterId },
        'the data center of a pod is not connected',
      );
  }

  #takeUp(pod: Pod, instance: Instance | undefined): void {
    if (instance !== undefined) {
      this.#instances.add(pod.id);
      this.#found.set(pod.id, instance);
    }
    if (nextPodStep(pod, instance) !== 'nothing') return this.poke(pod.id);
    this.#found.delete(pod.id);
  }

  async #removeStrays(engine: InstanceEngine, instances: ReadonlyMap<string, Instance>): Promise<void> {
    for (const { id, status } of instances.values()) {
      const pod = await this.#deps.store.findInAnyAccount(id);
      // A pod that is stopped keeps its last instance, for its log.
      if (
        pod !== undefined &&
        pod.wanted !== 'terminated' &&
        (status === 'exited' || this.#deps.engines.get(pod.dataCenterId) === undefined)
      )
        continue;
      this.#deps.log.warn({ instance: id }, 'an instance that no pod has is removed');
      await engine.remove(id, 0);
    }
  }

  // Looking at one pod.

  async #look(podId: string): Promise<void> {
    const pod = await this.#deps.store.findInAnyAccount(podId);
    const engine = pod && this.#deps.engines.get(pod.dataCenterId);
    if (pod === undefined || engine === undefined || this.#unreached.has(engine)) return;
    for (const instant of [pod.stopAfter, pod.terminateAfter])
      this.#nextDue = Math.min(this.#nextDue, instant ?? Infinity);
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

  // Given instants.

  async #runDue(now: number): Promise<void> {
    const { store } = this.#deps;
    this.#nextDue = Infinity;
    for (const pod of await store.listDue(now)) {
      const isLast = pod.terminateAfter !== null && pod.terminateAfter <= now;
      const action = isLast ? 'delete' : 'stop';
      const audit = {
        at: now,
        accountId: pod.accountId,
        keyId: null,
        interface: 'system',
        requestId: '',
        action,
        resource: 'pod',
        resourceId: pod.id,
        changes: [],
      };
      try {
        await store.change(pod.accountId, pod.id, {}, (current) => ({
          record: isLast
            ? requestTermination(current, now)
            : requestStop(current, now, 'Stopping at its given instant'),
          audit,
        }));
      } catch (error) {
        if (!(error instanceof BerthError) || error.code !== 'state') throw error;
      }
      this.poke(pod.id);
      this.#deps.onChanged(pod.id);
    }
    this.#nextDue = Math.min(this.#nextDue, (await store.nextDueAt()) ?? Infinity);
  }
}
