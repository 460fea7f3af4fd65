import type { InstanceEngine } from '../../engines/engine.ts';
import type { Instance, InstanceHandle } from '../../engines/instance.ts';
import { describeExit, readCrashSummary } from '../crash-summary.ts';
import { MAX_REASON_LENGTH, STOP_GRACE_MS } from '../reconcile-settings.ts';
import { markEnded, markRunning, markStarting } from '../../domain/pods/pod-transitions.ts';
import { isInterrupted } from '../../domain/pods/pod-states.ts';
import type { PodStore } from '../../store/pod-store.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import { buildPodSpec } from './pod-spec-sources.ts';
import type { PodSpecSources } from './pod-spec-sources.ts';
import type { PodStep } from '../../domain/pods/pod-step.ts';
import type { PodVolumeDisks } from './pod-volume-disks.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';
import type { CloudEventBus } from '../../domain/events.ts';

/** How long an interrupted pod has to stop, from the signal on. */
const INTERRUPTION_GRACE_MS = 5_000;
/** How long a pod waits for its reserved hardware to be freed by another pod. */
const CAPACITY_WAIT_MS = 60_000;
/** A pod that is terminated has less time to stop: nothing of it is kept. */
const TERMINATE_GRACE_MS = 2_000;
/** The progress of a start is stored at most this often. */
const PROGRESS_INTERVAL_MS = 1_000;

export interface PodInstancesDeps {
  store: PodStore;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  specSources: PodSpecSources;
  volumeDisks: PodVolumeDisks;
  /** Reconciles a pod again. */
  wake(podId: string): void;
  events: CloudEventBus;
  /** Whether the server is closing. */
  isClosed(): boolean;
  clock: Clock;
  log: Log;
}

/** Takes the steps of the pod policy on the instances of pods, and records the results. */
export class PodInstances {
  readonly #deps: PodInstancesDeps;
  /** Pods that have an instance. Engines report the exits of other instances too. */
  readonly #withInstance = new Set<string>();
  /** Pods whose instance is being started, and its generation. */
  readonly #starting = new Map<string, number>();
  /** Pods that wait for their hardware to be free, and since when. */
  readonly #waitingSince = new Map<string, number>();

  constructor(deps: PodInstancesDeps) {
    this.#deps = deps;
  }

  /** Whether this pod has an instance. */
  has(podId: string): boolean {
    return this.#withInstance.has(podId);
  }

  /** An instance of this pod was found. */
  add(podId: string): void {
    this.#withInstance.add(podId);
  }

  /** Another server is the leader now. */
  clear(): void {
    this.#withInstance.clear();
    this.#waitingSince.clear();
  }

  /** Ends a start in progress that is no longer wanted. */
  async abortStart(podId: string): Promise<void> {
    if (!this.#starting.has(podId)) return;
    try {
      const pod = await this.#deps.store.findInAnyAccount(podId);
      const generation = this.#starting.get(podId);
      if (
        pod !== undefined &&
        generation !== undefined &&
        (pod.wanted !== 'running' || pod.generation !== generation)
      )
        await this.#deps.engines.get(pod.dataCenterId)?.stop(podId, 0);
    } catch (error) {
      this.#deps.log.warn({ err: error, podId }, 'the start of a pod could not be aborted');
    }
  }

  /** Idempotent. */
  async execute(
    step: PodStep,
    pod: Pod,
    engine: InstanceEngine,
    instance: Instance | undefined,
  ): Promise<void> {
    switch (step) {
      case 'nothing':
        return;
      case 'adopt':
        return this.#adopt(pod, instance);
      case 'start':
        await this.#recordEnd(pod, instance?.endedAt ?? null, instance?.exitCode ?? null);
        return this.#start(pod, engine);
      case 'replace':
        await this.#stopInstance(pod, engine, instance, STOP_GRACE_MS);
        return this.#start(pod, engine);
      case 'stop': {
        const last = await this.#stopInstance(
          pod,
          engine,
          instance,
          isInterrupted(pod) ? INTERRUPTION_GRACE_MS : STOP_GRACE_MS,
        );
        return this.#markEnded(pod, {
          at: last?.endedAt ?? this.#deps.clock.now(),
          exitCode: last?.exitCode ?? null,
          reason: null,
        });
      }
      case 'ended':
        return this.#handleExit(pod, engine, instance);
      case 'remove':
        return this.#remove(pod, engine, instance);
    }
  }

  async #adopt(pod: Pod, instance: Instance | undefined): Promise<void> {
    if (instance === undefined) return;
    this.#withInstance.add(pod.id);
    await this.#observe(pod, (current) =>
      markRunning(
        current,
        {
          handle: JSON.stringify(instance.handle),
          startedAt: instance.startedAt,
          networkAddress: instance.networkAddress,
        },
        this.#deps.clock.now(),
      ),
    );
  }

  async #start(pod: Pod, engine: InstanceEngine): Promise<void> {
    const { clock } = this.#deps;
    const now = clock.now();
    // If something else is wanted by now, the next reconciliation handles it.
    const starting = await this.#observe(pod, (current) => markStarting(current, 'Starting', now));
    if (starting === undefined) return;
    this.#withInstance.add(pod.id);
    this.#starting.set(pod.id, pod.generation);
    let handle: InstanceHandle;
    try {
      handle = await engine.start(
        await buildPodSpec(pod, engine, this.#deps.specSources, this.#progressOf(pod)),
      );
    } catch (error) {
      this.#starting.delete(pod.id);
      return this.#handleStartFailure(pod, error);
    }
    this.#starting.delete(pod.id);
    this.#waitingSince.delete(pod.id);
    this.#deps.events.publish('pod.started', { podId: pod.id, dataCenterId: pod.dataCenterId });
    const instance = await engine.adopt(handle);
    const run = { handle: JSON.stringify(handle), startedAt: instance?.startedAt ?? clock.now() };
    const running = await this.#observe(pod, (current) =>
      markRunning(current, { ...run, networkAddress: instance?.networkAddress }, clock.now()),
    );
    // Something else is wanted by now: the next reconciliation has to find what was started, unless another server
    // led meanwhile, found it and recorded its end.
    if (running === undefined)
      await this.#deps.store.observe(pod.id, (current) =>
        current.handle === run.handle && current.endedAt !== null
          ? undefined
          : {
              ...current,
              ...run,
              instanceGeneration: pod.generation,
              endedAt: null,
              exitCode: null,
              settled: false,
            },
      );
    if (instance?.status === 'exited') this.#deps.wake(pod.id);
  }

  async #handleStartFailure(pod: Pod, error: unknown): Promise<void> {
    if (this.#deps.isClosed()) return;
    if (
      error instanceof BerthError &&
      error.code === 'capacity' &&
      (await this.#waitForCapacity(pod, error.message))
    )
      return;
    const reason = error instanceof Error ? error.message : String(error);
    this.#deps.log.info({ podId: pod.id, reason }, 'a pod did not start');
    if (!(error instanceof BerthError))
      this.#deps.log.warn({ err: error, podId: pod.id }, 'a pod did not start for an unexpected reason');
    const failed = await this.#observe(pod, (current) =>
      markEnded(
        { ...current, instanceGeneration: current.generation },
        { at: this.#deps.clock.now(), exitCode: null, reason },
      ),
    );
    if (failed === undefined) return;
    this.#withInstance.delete(pod.id);
    this.#deps.events.publish('pod.crashed', { podId: pod.id, kind: 'start' });
  }

  /**
   * Its hardware is reserved, but another pod is still stopping there. It is tried again when a pod has
   * ended, and with each resync.
   */
  async #waitForCapacity(pod: Pod, why: string): Promise<boolean> {
    const now = this.#deps.clock.now();
    const since = this.#waitingSince.get(pod.id) ?? now;
    if (now - since > CAPACITY_WAIT_MS) {
      this.#waitingSince.delete(pod.id);
      return false;
    }
    this.#waitingSince.set(pod.id, since);
    return (
      (await this.#observe(pod, (current) => ({
        ...current,
        status: 'PROVISIONING',
        statusDetail: `Waiting for its place to be free: ${why}`.slice(0, MAX_REASON_LENGTH),
      }))) !== undefined
    );
  }

  #wakeWaiting(): void {
    for (const podId of this.#waitingSince.keys()) this.#deps.wake(podId);
  }

  /** Stores the progress of a start. */
  #progressOf(pod: Pod): (line: string) => void {
    let storedAt = 0;
    return (line) => {
      const now = this.#deps.clock.now();
      if (now - storedAt < PROGRESS_INTERVAL_MS || this.#deps.isClosed()) return;
      storedAt = now;
      this.#observe(pod, (current) =>
        current.status === 'STARTING'
          ? markStarting(current, line.slice(0, MAX_REASON_LENGTH), now)
          : undefined,
      ).catch((error: unknown) =>
        this.#deps.log.warn({ err: error }, 'the progress of a pod could not be stored'),
      );
    };
  }

  async #handleExit(pod: Pod, engine: InstanceEngine, instance: Instance | undefined): Promise<void> {
    const wasRequested = pod.wanted !== 'running';
    const exitCode = instance?.exitCode ?? null;
    const at = instance?.endedAt ?? this.#deps.clock.now();
    const reason = wasRequested || exitCode === 0 ? null : await this.#exitReason(engine, pod.id, instance);
    // This deletes its container disk.
    if (instance !== undefined) await engine.stop(pod.id, 0);
    if (reason !== null) this.#deps.events.publish('pod.crashed', { podId: pod.id, kind: 'exit' });
    return this.#markEnded(pod, { at, exitCode, reason });
  }

  async #exitReason(engine: InstanceEngine, id: string, instance: Instance | undefined): Promise<string> {
    if (instance === undefined) return 'It ended while Berth was away';
    if (instance.disrupted !== undefined) return instance.disrupted;
    const exit = describeExit(instance);
    const summary = await readCrashSummary(engine, id);
    const reason = `${exit.charAt(0).toUpperCase()}${exit.slice(1)}`;
    return (summary === '' ? reason : `${reason}: ${summary}`).slice(0, MAX_REASON_LENGTH);
  }

  /** Stops the instance and records its end. */
  async #stopInstance(
    pod: Pod,
    engine: InstanceEngine,
    instance: Instance | undefined,
    graceMs: number,
  ): Promise<Instance | undefined> {
    await engine.stop(pod.id, graceMs);
    const last = instance === undefined ? undefined : await engine.adopt(instance.handle);
    await this.#recordEnd(pod, last?.endedAt ?? null, last?.exitCode ?? null);
    return last;
  }

  /** Records the end of the current run in the store. */
  async #recordEnd(pod: Pod, endedAt: number | null, exitCode: number | null): Promise<void> {
    if (pod.startedAt === null || pod.endedAt !== null) return;
    const at = endedAt ?? this.#deps.clock.now();
    await this.#deps.store.observe(pod.id, (current) =>
      current.startedAt === pod.startedAt && current.endedAt === null
        ? { ...current, endedAt: at, exitCode }
        : undefined,
    );
  }

  async #markEnded(
    pod: Pod,
    ending: { at: number; exitCode: number | null; reason: string | null },
  ): Promise<void> {
    await this.#recordEnd(pod, ending.at, ending.exitCode);
    const ended = await this.#observe(pod, (current) => markEnded(current, ending));
    if (ended === undefined) return;
    this.#withInstance.delete(pod.id);
    this.#waitingSince.delete(pod.id);
    this.#wakeWaiting();
  }

  async #remove(pod: Pod, engine: InstanceEngine, instance: Instance | undefined): Promise<void> {
    const last = await this.#stopInstance(pod, engine, instance, TERMINATE_GRACE_MS);
    await engine.remove(pod.id);
    // Recorded before its disk is deleted: even if that fails, its hardware is free.
    await this.#markEnded(pod, {
      at: last?.endedAt ?? this.#deps.clock.now(),
      exitCode: last?.exitCode ?? null,
      reason: null,
    });
    await this.#deps.volumeDisks.remove(pod.id);
    if (pod.volumeSize > 0 && pod.networkVolumeId === null) await engine.volumes?.remove(pod.id);
  }

  /**
   * Stores what was observed of a pod, unless something else is wanted of it by now. Answers undefined if it
   * was not stored.
   */
  async #observe(seen: Pod, next: (current: Pod) => Pod | undefined): Promise<Pod | undefined> {
    if (this.#deps.isClosed()) return undefined;
    let written: Pod | undefined;
    await this.#deps.store.observe(seen.id, (current) => {
      written =
        current.generation === seen.generation && current.wanted === seen.wanted ? next(current) : undefined;
      return written;
    });
    if (written !== undefined)
      this.#deps.events.publish('pod.changed', { podId: seen.id, source: 'reconciler' });
    return written;
  }
}
