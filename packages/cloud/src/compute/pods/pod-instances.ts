import type { InstanceEngine } from '../../engines/engine.ts';
import type { Instance, InstanceHandle } from '../../engines/instance.ts';
import { crashSummary } from '../crash-summary.ts';
import { markEnded, markRunning, markStarting } from '../../domain/pods/pod-transitions.ts';
import { isInterrupted } from '../../domain/pods/pod-states.ts';
import type { PodStore } from '../../store/pod-store.ts';
import type { Clock } from '../../support/clock.ts';
import { BerthError } from '../../support/errors.ts';
import type { Log } from '../../support/log.ts';
import { buildPodSpec } from './pod-spec-sources.ts';
import type { PodSpecSources } from './pod-spec-sources.ts';
import type { PodStep } from './pod-step.ts';
import type { PodVolumeDisks } from './pod-volume-disks.ts';
import type { Pod } from '../../domain/pods/pod-record.ts';

const STOP_GRACE_MS = 10_000;
/** What an interrupted pod has to put its things in order, from the signal on. */
const INTERRUPTION_GRACE_MS = 5_000;
/** A pod whose place is promised waits this long for whoever has to leave it. */
const CAPACITY_WAIT_MS = 60_000;
/** Whoever terminates a pod does not want it to think about it. */
const TERMINATE_GRACE_MS = 2_000;
/** How a start goes on is written down at most this often. */
const PROGRESS_INTERVAL_MS = 1_000;
const CRASH_LOG_LINES = 30;
const MAX_REASON_LENGTH = 500;

export interface PodInstancesDeps {
  store: PodStore;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  specSources: PodSpecSources;
  volumeDisks: PodVolumeDisks;
  /** A pod is to be looked at again. */
  wake(podId: string): void;
  /** A pod has changed: whoever waits for that is to be told. */
  onChanged(podId: string): void;
  /** Whether Berth closes. */
  isClosed(): boolean;
  clock: Clock;
  log: Log;
}

/** The instances of pods: takes the steps that their keeper finds to be due, and writes down what came of them. */
export class PodInstances {
  readonly #deps: PodInstancesDeps;
  /** Pods that have an instance: the engines tell of others too. */
  readonly #up = new Set<string>();
  /** Pods whose engine was asked for an instance, and of which generation. */
  readonly #starting = new Map<string, number>();
  /** Pods that wait for their place to be free, and since when. */
  readonly #waiting = new Map<string, number>();

  constructor(deps: PodInstancesDeps) {
    this.#deps = deps;
  }

  /** Whether this pod has an instance. */
  has(podId: string): boolean {
    return this.#up.has(podId);
  }

  /** An instance of this pod was there already. */
  add(podId: string): void {
    this.#up.add(podId);
  }

  /** Another server looks after them now. */
  clear(): void {
    this.#up.clear();
    this.#waiting.clear();
  }

  /** A start that nobody wants any more is ended, whatever it waits for. */
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
      this.#deps.log.warn({ err: error, podId }, 'the start of a pod could not be ended');
    }
  }

  /** Takes a step. Taking it twice does no harm. */
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
        await this.#noteEnd(pod, instance?.endedAt ?? null, instance?.exitCode ?? null);
        return this.#start(pod, engine);
      case 'renew':
        await this.#end(pod, engine, instance, STOP_GRACE_MS);
        return this.#start(pod, engine);
      case 'stop': {
        const last = await this.#end(
          pod,
          engine,
          instance,
          isInterrupted(pod) ? INTERRUPTION_GRACE_MS : STOP_GRACE_MS,
        );
        return this.#ended(pod, {
          at: last?.endedAt ?? this.#deps.clock.now(),
          exitCode: last?.exitCode ?? null,
          reason: null,
        });
      }
      case 'ended':
        return this.#endedByItself(pod, engine, instance);
      case 'remove':
        return this.#remove(pod, engine, instance);
    }
  }

  async #adopt(pod: Pod, instance: Instance | undefined): Promise<void> {
    if (instance === undefined) return;
    this.#up.add(pod.id);
    await this.#observe(pod, (current) =>
      markRunning(
        current,
        { handle: JSON.stringify(instance.handle), startedAt: instance.startedAt },
        this.#deps.clock.now(),
      ),
    );
  }

  async #start(pod: Pod, engine: InstanceEngine): Promise<void> {
    const { clock } = this.#deps;
    const now = clock.now();
    // Another generation, or another wish, is for the next look.
    const starting = await this.#observe(pod, (current) => markStarting(current, 'Starting', now));
    if (starting === undefined) return;
    this.#up.add(pod.id);
    this.#starting.set(pod.id, pod.generation);
    let handle: InstanceHandle;
    try {
      handle = await engine.start(
        await buildPodSpec(pod, engine, this.#deps.specSources, this.#progressOf(pod)),
      );
    } catch (error) {
      this.#starting.delete(pod.id);
      return this.#notStarted(pod, error);
    }
    this.#starting.delete(pod.id);
    this.#waiting.delete(pod.id);
    const instance = await engine.adopt(handle);
    const run = { handle: JSON.stringify(handle), startedAt: instance?.startedAt ?? clock.now() };
    const running = await this.#observe(pod, (current) => markRunning(current, run, clock.now()));
    // Something else may be wanted by now: the next look has to find what was started.
    if (running === undefined)
      await this.#deps.store.observe(pod.id, (current) => ({
        ...current,
        ...run,
        instanceGeneration: pod.generation,
        endedAt: null,
        exitCode: null,
      }));
    if (instance?.status === 'exited') this.#deps.wake(pod.id);
  }

  async #notStarted(pod: Pod, error: unknown): Promise<void> {
    if (this.#deps.isClosed()) return;
    if (
      error instanceof BerthError &&
      error.code === 'capacity' &&
      (await this.#waitsForRoom(pod, error.message))
    )
      return;
    const reason = error instanceof Error ? error.message : String(error);
    this.#deps.log.info({ podId: pod.id, reason }, 'a pod did not start');
    if (!(error instanceof BerthError))
      this.#deps.log.warn({ err: error, podId: pod.id }, 'a pod did not start for an unknown reason');
    const failed = await this.#observe(pod, (current) =>
      markEnded(
        { ...current, instanceGeneration: current.generation },
        { at: this.#deps.clock.now(), exitCode: null, reason },
      ),
    );
    if (failed !== undefined) this.#up.delete(pod.id);
  }

  /** Its place is promised, but somebody is still about to leave it: it is tried again when another pod has ended, and now and then. */
  async #waitsForRoom(pod: Pod, why: string): Promise<boolean> {
    const now = this.#deps.clock.now();
    const since = this.#waiting.get(pod.id) ?? now;
    if (now - since > CAPACITY_WAIT_MS) {
      this.#waiting.delete(pod.id);
      return false;
    }
    this.#waiting.set(pod.id, since);
    return (
      (await this.#observe(pod, (current) => ({
        ...current,
        status: 'PROVISIONING',
        statusDetail: `Waiting for its place to be free: ${why}`.slice(0, MAX_REASON_LENGTH),
      }))) !== undefined
    );
  }

  #roomIsFree(): void {
    for (const podId of this.#waiting.keys()) this.#deps.wake(podId);
  }

  /** Writes down how a start goes on, now and then. */
  #progressOf(pod: Pod): (line: string) => void {
    let writtenAt = 0;
    return (line) => {
      const now = this.#deps.clock.now();
      if (now - writtenAt < PROGRESS_INTERVAL_MS || this.#deps.isClosed()) return;
      writtenAt = now;
      this.#observe(pod, (current) =>
        current.status === 'STARTING'
          ? markStarting(current, line.slice(0, MAX_REASON_LENGTH), now)
          : undefined,
      ).catch((error: unknown) =>
        this.#deps.log.warn({ err: error }, 'the progress of a pod could not be written down'),
      );
    };
  }

  async #endedByItself(pod: Pod, engine: InstanceEngine, instance: Instance | undefined): Promise<void> {
    const told = pod.wanted !== 'running';
    const exitCode = instance?.exitCode ?? null;
    const at = instance?.endedAt ?? this.#deps.clock.now();
    const reason = told || exitCode === 0 ? null : await this.#reasonOf(engine, pod.id, instance);
    // Its container disk goes with it.
    if (instance !== undefined) await engine.stop(pod.id, 0);
    return this.#ended(pod, { at, exitCode, reason });
  }

  async #reasonOf(engine: InstanceEngine, id: string, instance: Instance | undefined): Promise<string> {
    if (instance === undefined) return 'It ended while Berth was away';
    const lines: string[] = [];
    for await (const { line } of engine.logs(id, { tail: CRASH_LOG_LINES, source: 'container' }))
      lines.push(line);
    const how =
      instance.signal !== null
        ? `It was ended by ${instance.signal}`
        : `It ended with code ${instance.exitCode ?? 'unknown'}`;
    const last = crashSummary(lines);
    return (last === '' ? how : `${how}: ${last}`).slice(0, MAX_REASON_LENGTH);
  }

  /** Stops the instance and answers how it ended. */
  async #end(
    pod: Pod,
    engine: InstanceEngine,
    instance: Instance | undefined,
    graceMs: number,
  ): Promise<Instance | undefined> {
    await engine.stop(pod.id, graceMs);
    const last = instance === undefined ? undefined : await engine.adopt(instance.handle);
    await this.#noteEnd(pod, last?.endedAt ?? null, last?.exitCode ?? null);
    return last;
  }

  /** A run is over, whatever comes next. */
  async #noteEnd(pod: Pod, endedAt: number | null, exitCode: number | null): Promise<void> {
    if (pod.startedAt === null || pod.endedAt !== null) return;
    const at = endedAt ?? this.#deps.clock.now();
    await this.#deps.store.observe(pod.id, (current) =>
      current.startedAt === pod.startedAt && current.endedAt === null
        ? { ...current, endedAt: at, exitCode }
        : undefined,
    );
  }

  async #ended(
    pod: Pod,
    ending: { at: number; exitCode: number | null; reason: string | null },
  ): Promise<void> {
    await this.#noteEnd(pod, ending.at, ending.exitCode);
    const ended = await this.#observe(pod, (current) => markEnded(current, ending));
    if (ended === undefined) return;
    this.#up.delete(pod.id);
    this.#waiting.delete(pod.id);
    this.#roomIsFree();
  }

  async #remove(pod: Pod, engine: InstanceEngine, instance: Instance | undefined): Promise<void> {
    const last = await this.#end(pod, engine, instance, TERMINATE_GRACE_MS);
    await engine.remove(pod.id);
    // Its end comes first: whatever is in the way of clearing its disk, it holds nothing any more.
    await this.#ended(pod, {
      at: last?.endedAt ?? this.#deps.clock.now(),
      exitCode: last?.exitCode ?? null,
      reason: null,
    });
    await this.#deps.volumeDisks.remove(pod.id);
  }

  /** Writes what was seen of a pod, unless something else is wanted of it by now. Answers undefined where it did not. */
  async #observe(seen: Pod, next: (current: Pod) => Pod | undefined): Promise<Pod | undefined> {
    if (this.#deps.isClosed()) return undefined;
    let written: Pod | undefined;
    await this.#deps.store.observe(seen.id, (current) => {
      written =
        current.generation === seen.generation && current.wanted === seen.wanted ? next(current) : undefined;
      return written;
    });
    if (written !== undefined) this.#deps.onChanged(seen.id);
    return written;
  }
}
