import type { InstanceEngine } from '../engines/engine.ts';
import type { Instance, InstanceEvent, InstanceHandle, InstanceMount } from '../engines/instance.ts';
import { tellingLine } from '../fleet/telling-line.ts';
import { portVariables } from '../resources/pods/inner-port.ts';
import { hasEnded, isRunning, isStarting, stopped, terminated } from '../resources/pods/lifecycle.ts';
import { isInterrupted } from '../resources/pods/states.ts';
import type { Pod, PodStore } from '../store/pods.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import type { Log } from '../support/log.ts';
import { Rounds } from '../support/rounds.ts';
import { podEnvironment } from './environment.ts';
import { podSpec } from './spec.ts';
import type { SpecParts } from './spec.ts';
import { nextStep } from './step.ts';
import type { VolumeDisks } from './volume-disks.ts';

const TICK_MS = 500;
/** How often those are looked at again that are not settled: a failure may pass, and a wake-up may be lost. */
const RESYNC_MS = 5_000;
const STOP_GRACE_MS = 10_000;
/** What an interrupted pod has to put its things in order, from the signal on. */
const INTERRUPTION_GRACE_MS = 5_000;
/** A pod whose place is promised waits this long for whoever has to leave it. */
const WAIT_FOR_ROOM_MS = 60_000;
/** Whoever terminates a pod does not want it to think about it. */
const TERMINATE_GRACE_MS = 2_000;
/** How a start goes on is written down at most this often. */
const PROGRESS_EVERY_MS = 1_000;
/** As long as engines keep the logs of what was removed. */
const KEEP_TERMINATED_MS = 7 * 24 * 3_600_000;
/** How often what is left of terminated pods is looked after. */
const TIDY_EVERY_MS = 10 * 60_000;
const LAST_LINES = 30;
const LONGEST_REASON = 500;
/** What is under way may end while Berth closes, but not for long: the next one goes on with it. */
const CLOSE_WITHIN_MS = 1_000;

export interface PodKeeperParts {
  store: PodStore;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  /** The environment with its secrets filled in. */
  resolveEnv(accountId: string, env: Record<string, string>): Promise<Record<string, string>>;
  /** What an image is pulled with: saved credentials that are named, or what the account has for this image. */
  credentials(accountId: string, registryId: string | null, image: string): Promise<{ username: string; password: string } | undefined>;
  sshKeys(accountId: string): Promise<readonly string[]>;
  jupyterPassword(podId: string): string;
  /** Where TCP ports are reached from outside. */
  publicIp(): string;
  /** A pod's own key. */
  tokenOf(podId: string): string;
  /** Where the pods of a data center reach Berth. */
  apiUrl(dataCenterId: string): Promise<string>;
  /** Where the network volume of a pod lies; undefined where it has none, or it is gone. */
  networkVolume(pod: Pod): Promise<{ folder: string } | undefined>;
  volumeDisks: VolumeDisks;
  /** A pod has changed: whoever waits for that is to be told. */
  onChanged(podId: string): void;
  clock: Clock;
  log: Log;
}

/**
 * Makes what is wanted of each pod into what is. It looks at a pod when something happened to it:
 * its owner asked for something, its instance ended, or an instant has come. Pods that rest cost
 * nothing. Every step can be taken twice, so a restart goes on where the last one stopped, with the
 * instances that are there.
 */
export class PodKeeper {
  readonly #parts: PodKeeperParts;
  readonly #rounds: Rounds;
  /** Pods that have an instance: the engines tell of others too. */
  readonly #up = new Set<string>();
  /** Instances that were there at the start, until they are taken up. */
  readonly #found = new Map<string, Instance>();
  readonly #met = new Set<InstanceEngine>();
  /** Of these, those that have not answered yet. */
  readonly #unreached = new Set<InstanceEngine>();
  /** Pods whose engine was asked for an instance, and of which generation. */
  readonly #starting = new Map<string, number>();
  /** Pods that wait for their place to be free, and since when. */
  readonly #waiting = new Map<string, number>();
  readonly #unwatch: (() => void)[] = [];
  #timer: NodeJS.Timeout | undefined;
  #nextDue = Infinity;
  #syncedAt = 0;
  #tidiedAt = 0;
  #leading = false;
  #closed = false;

  constructor(parts: PodKeeperParts) {
    this.#parts = parts;
    this.#rounds = new Rounds({
      look: (podId) => this.#look(podId),
      may: () => this.#leading && !this.#closed,
      onError: (error, podId) => {
        if (!this.#closed) parts.log.warn({ err: error, podId }, 'a pod could not be looked after; trying again');
      },
    });
  }

  /** Takes up the pods that are there, removes instances that nobody knows, and begins. */
  async start(): Promise<void> {
    const { store, engines } = this.#parts;
    this.#leading = true;
    for (const engine of new Set(engines.values())) this.#meet(engine);
    await this.#reachEngines();
    this.#nextDue = (await store.nextDue()) ?? Infinity;
    if (this.#closed || !this.#leading) return;
    this.#tidy(this.#parts.volumeDisks.sweep());
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** An engine has come to serve this data center. */
  async connect(dataCenterId: string): Promise<void> {
    const engine = this.#parts.engines.get(dataCenterId);
    if (engine === undefined || !this.#leading || this.#met.has(engine)) return;
    this.#meet(engine);
    await this.#reachEngines();
  }

  /** Something about this pod changed: look at it now. */
  poke(podId: string): void {
    if (this.#closed || !this.#leading) return;
    if (this.#rounds.isUnderWay(podId) && this.#starting.has(podId)) void this.#cutShort(podId);
    this.#rounds.ask(podId);
  }

  /** Some changes may not have been told: look at every pod that is not settled. */
  resync(): void {
    if (this.#closed || !this.#leading) return;
    this.#syncedAt = this.#parts.clock.now();
    this.#parts.store.unsettled().then(
      (ids) => ids.forEach((id) => this.poke(id)),
      (error: unknown) => this.#closed || this.#parts.log.warn({ err: error }, 'pods could not be looked for; trying again'),
    );
  }

  /** Another server looks after them now. */
  pause(): void {
    clearInterval(this.#timer);
    for (const unwatch of this.#unwatch.splice(0)) unwatch();
    for (const kept of [this.#up, this.#found, this.#met, this.#unreached, this.#waiting]) kept.clear();
    this.#leading = false;
  }

  /** Lets go. Pods go on. */
  async close(): Promise<void> {
    this.#closed = true;
    this.pause();
    const late = new Promise((resolve) => setTimeout(resolve, CLOSE_WITHIN_MS).unref());
    await Promise.race([this.#rounds.allOver(), late]);
  }

  #tick(): void {
    const now = this.#parts.clock.now();
    if (now >= this.#nextDue) void this.#runDue(now).catch((error: unknown) => this.#parts.log.warn({ err: error }, 'pods whose time has come could not be ended; trying again'));
    if (now - this.#syncedAt >= RESYNC_MS) {
      this.resync();
      if (this.#unreached.size > 0) void this.#reachEngines().catch((error: unknown) => this.#parts.log.warn({ err: error }, 'pods could not be taken up; trying again'));
    }
    if (now - this.#tidiedAt < TIDY_EVERY_MS) return;
    this.#tidiedAt = now;
    this.#tidy(this.#parts.volumeDisks.retry());
    this.#tidy(this.#parts.store.forget(now - KEEP_TERMINATED_MS));
  }

  /** Nobody waits for this, and what fails is tried another time. */
  #tidy(work: Promise<void>): void {
    work.catch((error: unknown) => this.#closed || this.#parts.log.warn({ err: error }, 'what is left of terminated pods could not be looked after'));
  }

  #onEvent({ id, status }: InstanceEvent): void {
    if (status === 'exited' && this.#up.has(id)) this.poke(id);
  }

  // Taking up what is there.

  #meet(engine: InstanceEngine): void {
    this.#met.add(engine);
    this.#unreached.add(engine);
    this.#unwatch.push(engine.watch((event) => this.#onEvent(event)));
  }

  async #reachEngines(): Promise<void> {
    const { store, engines } = this.#parts;
    const active = await store.active();
    for (const engine of [...this.#unreached]) {
      try {
        const instances = new Map((await engine.list()).filter(({ labels }) => labels['kind'] === 'pod').map((instance): [string, Instance] => [instance.id, instance]));
        if (this.#closed || !this.#leading) return;
        this.#unreached.delete(engine);
        for (const pod of active.filter(({ dataCenterId }) => engines.get(dataCenterId) === engine)) {
          this.#takeUp(pod, instances.get(pod.id));
          instances.delete(pod.id);
        }
        await this.#removeStrays(engine, instances);
      } catch (error) {
        if (!(error instanceof BerthError) || error.code !== 'unavailable') throw error;
        this.#parts.log.warn({ err: error }, 'an engine does not answer; its pods are taken up when it does');
      }
    }
    for (const pod of active.filter(({ dataCenterId }) => !engines.has(dataCenterId))) this.#parts.log.warn({ podId: pod.id, dataCenterId: pod.dataCenterId }, 'the data center of a pod is not connected');
  }

  #takeUp(pod: Pod, instance: Instance | undefined): void {
    if (instance !== undefined) {
      this.#up.add(pod.id);
      this.#found.set(pod.id, instance);
    }
    if (nextStep(pod, instance) !== 'nothing') return this.poke(pod.id);
    this.#found.delete(pod.id);
  }

  async #removeStrays(engine: InstanceEngine, instances: ReadonlyMap<string, Instance>): Promise<void> {
    for (const { id, status } of instances.values()) {
      const pod = await this.#parts.store.findAnywhere(id);
      // A pod that is stopped keeps its last instance, for its log.
      if (pod !== undefined && pod.wanted !== 'terminated' && (status === 'exited' || this.#parts.engines.get(pod.dataCenterId) === undefined)) continue;
      this.#parts.log.warn({ instance: id }, 'an instance that no pod has is removed');
      await engine.remove(id, 0);
    }
  }

  // Looking at one pod.

  async #look(podId: string): Promise<void> {
    const pod = await this.#parts.store.findAnywhere(podId);
    const engine = pod && this.#parts.engines.get(pod.dataCenterId);
    if (pod === undefined || engine === undefined || this.#unreached.has(engine)) return;
    for (const instant of [pod.stopAfter, pod.terminateAfter]) this.#nextDue = Math.min(this.#nextDue, instant ?? Infinity);
    const instance = await this.#instanceOf(pod, engine);
    const step = nextStep(pod, instance);
    this.#found.delete(podId);
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
        const last = await this.#end(pod, engine, instance, isInterrupted(pod) ? INTERRUPTION_GRACE_MS : STOP_GRACE_MS);
        return this.#ended(pod, { at: last?.endedAt ?? this.#parts.clock.now(), exitCode: last?.exitCode ?? null, reason: null });
      }
      case 'ended':
        return this.#endedByItself(pod, engine, instance);
      case 'remove':
        return this.#remove(pod, engine, instance);
    }
  }

  async #instanceOf(pod: Pod, engine: InstanceEngine): Promise<Instance | undefined> {
    const known = pod.handle === null ? undefined : await engine.adopt(JSON.parse(pod.handle) as InstanceHandle);
    return known ?? this.#found.get(pod.id);
  }

  async #adopt(pod: Pod, instance: Instance | undefined): Promise<void> {
    if (instance === undefined) return;
    this.#up.add(pod.id);
    await this.#observe(pod, (current) => isRunning(current, { handle: JSON.stringify(instance.handle), startedAt: instance.startedAt }, this.#parts.clock.now()));
  }

  async #start(pod: Pod, engine: InstanceEngine): Promise<void> {
    const { clock } = this.#parts;
    const now = clock.now();
    // Another generation, or another wish, is for the next look.
    const starting = await this.#observe(pod, (current) => isStarting(current, 'Starting', now));
    if (starting === undefined) return;
    this.#up.add(pod.id);
    this.#starting.set(pod.id, pod.generation);
    let handle: InstanceHandle;
    try {
      handle = await engine.start(podSpec(pod, engine, await this.#specParts(pod, engine)));
    } catch (error) {
      this.#starting.delete(pod.id);
      return this.#notStarted(pod, error);
    }
    this.#starting.delete(pod.id);
    this.#waiting.delete(pod.id);
    const instance = await engine.adopt(handle);
    const run = { handle: JSON.stringify(handle), startedAt: instance?.startedAt ?? clock.now() };
    const running = await this.#observe(pod, (current) => isRunning(current, run, clock.now()));
    // Something else may be wanted by now: the next look has to find what was started.
    if (running === undefined) await this.#parts.store.observe(pod.id, (current) => ({ ...current, ...run, instanceGeneration: pod.generation, endedAt: null, exitCode: null }));
    if (instance?.status === 'exited') this.poke(pod.id);
  }

  async #notStarted(pod: Pod, error: unknown): Promise<void> {
    if (this.#closed) return;
    if (error instanceof BerthError && error.code === 'capacity' && (await this.#waitsForRoom(pod, error.message))) return;
    const reason = error instanceof Error ? error.message : String(error);
    this.#parts.log.info({ podId: pod.id, reason }, 'a pod did not start');
    if (!(error instanceof BerthError)) this.#parts.log.warn({ err: error, podId: pod.id }, 'a pod did not start for an unknown reason');
    const failed = await this.#observe(pod, (current) => hasEnded({ ...current, instanceGeneration: current.generation }, { at: this.#parts.clock.now(), exitCode: null, reason }));
    if (failed !== undefined) this.#up.delete(pod.id);
  }

  async #specParts(pod: Pod, engine: InstanceEngine): Promise<SpecParts> {
    const { resolveEnv, credentials, sshKeys, jupyterPassword, publicIp, tokenOf, apiUrl } = this.#parts;
    const own = await resolveEnv(pod.accountId, pod.env);
    return {
      env: podEnvironment(pod, { own: { ...own, ...portVariables(pod.ports.map((entry) => Number.parseInt(entry, 10)), engine) }, sshKeys: pod.startSsh ? await sshKeys(pod.accountId) : [], jupyterPassword: jupyterPassword(pod.id), publicIp: publicIp(), apiKey: tokenOf(pod.id), apiUrl: await apiUrl(pod.dataCenterId) }),
      mounts: await this.#mounts(pod),
      registry: await credentials(pod.accountId, pod.registryId, pod.image),
      onProgress: this.#progressOf(pod),
    };
  }

  async #mounts(pod: Pod): Promise<InstanceMount[]> {
    const { networkVolume, volumeDisks } = this.#parts;
    if (pod.networkVolumeId === null) return pod.volumeSize > 0 ? [{ source: volumeDisks.folder(pod.id), path: pod.volumePath }] : [];
    const volume = await networkVolume(pod);
    if (volume === undefined) throw new BerthError('rule', `its network volume ${pod.networkVolumeId} is not in ${pod.dataCenterId} any more`);
    return [{ source: volume.folder, path: pod.volumePath }];
  }

  /** Its place is promised, but somebody is still about to leave it: it is tried again when another pod has ended, and now and then. */
  async #waitsForRoom(pod: Pod, why: string): Promise<boolean> {
    const now = this.#parts.clock.now();
    const since = this.#waiting.get(pod.id) ?? now;
    if (now - since > WAIT_FOR_ROOM_MS) {
      this.#waiting.delete(pod.id);
      return false;
    }
    this.#waiting.set(pod.id, since);
    return (await this.#observe(pod, (current) => ({ ...current, status: 'PROVISIONING', statusDetail: `Waiting for its place to be free: ${why}`.slice(0, LONGEST_REASON) }))) !== undefined;
  }

  #roomIsFree(): void {
    for (const podId of this.#waiting.keys()) this.poke(podId);
  }

  /** Writes down how a start goes on, now and then. */
  #progressOf(pod: Pod): (line: string) => void {
    let writtenAt = 0;
    return (line) => {
      const now = this.#parts.clock.now();
      if (now - writtenAt < PROGRESS_EVERY_MS || this.#closed) return;
      writtenAt = now;
      this.#observe(pod, (current) => (current.status === 'STARTING' ? isStarting(current, line.slice(0, LONGEST_REASON), now) : undefined)).catch((error: unknown) => this.#parts.log.warn({ err: error }, 'the progress of a pod could not be written down'));
    };
  }

  /** A start that nobody wants any more is ended, whatever it waits for. */
  async #cutShort(podId: string): Promise<void> {
    try {
      const pod = await this.#parts.store.findAnywhere(podId);
      const generation = this.#starting.get(podId);
      if (pod !== undefined && generation !== undefined && (pod.wanted !== 'running' || pod.generation !== generation)) await this.#parts.engines.get(pod.dataCenterId)?.stop(podId, 0);
    } catch (error) {
      this.#parts.log.warn({ err: error, podId }, 'the start of a pod could not be ended');
    }
  }

  async #endedByItself(pod: Pod, engine: InstanceEngine, instance: Instance | undefined): Promise<void> {
    const told = pod.wanted !== 'running';
    const exitCode = instance?.exitCode ?? null;
    const at = instance?.endedAt ?? this.#parts.clock.now();
    const reason = told || exitCode === 0 ? null : await this.#reasonOf(engine, pod.id, instance);
    // Its container disk goes with it.
    if (instance !== undefined) await engine.stop(pod.id, 0);
    return this.#ended(pod, { at, exitCode, reason });
  }

  async #reasonOf(engine: InstanceEngine, id: string, instance: Instance | undefined): Promise<string> {
    if (instance === undefined) return 'It ended while Berth was away';
    const lines: string[] = [];
    for await (const { line } of engine.logs(id, { tail: LAST_LINES, source: 'container' })) lines.push(line);
    const how = instance.signal !== null ? `It was ended by ${instance.signal}` : `It ended with code ${instance.exitCode ?? 'unknown'}`;
    const last = tellingLine(lines);
    return (last === '' ? how : `${how}: ${last}`).slice(0, LONGEST_REASON);
  }

  /** Stops the instance and answers how it ended. */
  async #end(pod: Pod, engine: InstanceEngine, instance: Instance | undefined, graceMs: number): Promise<Instance | undefined> {
    await engine.stop(pod.id, graceMs);
    const last = instance === undefined ? undefined : await engine.adopt(instance.handle);
    await this.#noteEnd(pod, last?.endedAt ?? null, last?.exitCode ?? null);
    return last;
  }

  /** A run is over, whatever comes next. */
  async #noteEnd(pod: Pod, endedAt: number | null, exitCode: number | null): Promise<void> {
    if (pod.startedAt === null || pod.endedAt !== null) return;
    const at = endedAt ?? this.#parts.clock.now();
    await this.#parts.store.observe(pod.id, (current) => (current.startedAt === pod.startedAt && current.endedAt === null ? { ...current, endedAt: at, exitCode } : undefined));
  }

  async #ended(pod: Pod, ending: { at: number; exitCode: number | null; reason: string | null }): Promise<void> {
    await this.#noteEnd(pod, ending.at, ending.exitCode);
    const ended = await this.#observe(pod, (current) => hasEnded(current, ending));
    if (ended === undefined) return;
    this.#up.delete(pod.id);
    this.#waiting.delete(pod.id);
    this.#roomIsFree();
  }

  async #remove(pod: Pod, engine: InstanceEngine, instance: Instance | undefined): Promise<void> {
    const last = await this.#end(pod, engine, instance, TERMINATE_GRACE_MS);
    await engine.remove(pod.id);
    // Its end comes first: whatever is in the way of clearing its disk, it holds nothing any more.
    await this.#ended(pod, { at: last?.endedAt ?? this.#parts.clock.now(), exitCode: last?.exitCode ?? null, reason: null });
    await this.#parts.volumeDisks.remove(pod.id);
  }

  /** Writes what was seen of a pod, unless something else is wanted of it by now. Answers undefined where it did not. */
  async #observe(seen: Pod, next: (current: Pod) => Pod | undefined): Promise<Pod | undefined> {
    if (this.#closed) return undefined;
    let written: Pod | undefined;
    await this.#parts.store.observe(seen.id, (current) => {
      written = current.generation === seen.generation && current.wanted === seen.wanted ? next(current) : undefined;
      return written;
    });
    if (written !== undefined) this.#parts.onChanged(seen.id);
    return written;
  }

  // Given instants.

  async #runDue(now: number): Promise<void> {
    const { store } = this.#parts;
    this.#nextDue = Infinity;
    for (const pod of await store.due(now)) {
      const isLast = pod.terminateAfter !== null && pod.terminateAfter <= now;
      const action = isLast ? 'delete' : 'stop';
      const audit = { at: now, accountId: pod.accountId, keyId: null, interface: 'system', requestId: '', action, resource: 'pod', resourceId: pod.id, changes: [] };
      try {
        await store.change(pod.accountId, pod.id, {}, (current) => ({ record: isLast ? terminated(current, now) : stopped(current, now, 'Stopping at its given instant'), audit }));
      } catch (error) {
        if (!(error instanceof BerthError) || error.code !== 'state') throw error;
      }
      this.poke(pod.id);
      this.#parts.onChanged(pod.id);
    }
    this.#nextDue = Math.min(this.#nextDue, (await store.nextDue()) ?? Infinity);
  }
}
