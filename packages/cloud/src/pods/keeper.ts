import type { InstanceEngine } from '../engines/engine.ts';
import type { Instance, InstanceEvent, InstanceHandle } from '../engines/instance.ts';
import { stopped, terminated } from '../resources/pods/lifecycle.ts';
import type { Pod, PodStore } from '../store/pods.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import type { Log } from '../support/log.ts';
import { Rounds } from '../support/rounds.ts';
import { PodInstances } from './instances.ts';
import type { PodProvisions } from './provisions.ts';
import { nextStep } from './step.ts';
import type { VolumeDisks } from './volume-disks.ts';

const TICK_MS = 500;
/** How often those are looked at again that are not settled: a failure may pass, and a wake-up may be lost. */
const RESYNC_MS = 5_000;
/** As long as engines keep the logs of what was removed. */
const KEEP_TERMINATED_MS = 7 * 24 * 3_600_000;
/** How often what is left of terminated pods is looked after. */
const TIDY_EVERY_MS = 10 * 60_000;
/** What is under way may end while Berth closes, but not for long: the next one goes on with it. */
const CLOSE_WITHIN_MS = 1_000;

export interface PodKeeperParts extends PodProvisions {
  store: PodStore;
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  volumeDisks: VolumeDisks;
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
export class PodKeeper {
  readonly #parts: PodKeeperParts;
  readonly #rounds: Rounds;
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

  constructor(parts: PodKeeperParts) {
    this.#parts = parts;
    this.#rounds = new Rounds({
      look: (podId) => this.#look(podId),
      may: () => this.#leading && !this.#closed,
      onError: (error, podId) => {
        if (!this.#closed)
          parts.log.warn({ err: error, podId }, 'a pod could not be looked after; trying again');
      },
    });
    this.#instances = new PodInstances({
      ...parts,
      provisions: parts,
      poke: (podId) => this.poke(podId),
      isClosed: () => this.#closed,
    });
  }

  /** Takes up the pods that are there, removes instances that nobody knows, and begins. */
  async start(): Promise<void> {
    const { store, engines } = this.#parts;
    this.#leading = true;
    for (const engine of new Set(engines.values())) this.#meet(engine);
    await this.#reachEngines();
    // Whoever closes meanwhile takes the store along.
    if (this.#closed || !this.#leading) return;
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
    if (this.#rounds.isUnderWay(podId)) void this.#instances.cutShort(podId);
    this.#rounds.ask(podId);
  }

  /** Some changes may not have been told: look at every pod that is not settled. */
  resync(): void {
    if (this.#closed || !this.#leading) return;
    this.#syncedAt = this.#parts.clock.now();
    this.#parts.store.unsettled().then(
      (ids) => ids.forEach((id) => this.poke(id)),
      (error: unknown) =>
        this.#closed || this.#parts.log.warn({ err: error }, 'pods could not be looked for; trying again'),
    );
  }

  /** Another server looks after them now. */
  pause(): void {
    clearInterval(this.#timer);
    for (const unwatch of this.#unwatch.splice(0)) unwatch();
    for (const kept of [this.#found, this.#met, this.#unreached]) kept.clear();
    this.#instances.forget();
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
    if (now >= this.#nextDue)
      void this.#runDue(now).catch((error: unknown) =>
        this.#parts.log.warn({ err: error }, 'pods whose time has come could not be ended; trying again'),
      );
    if (now - this.#syncedAt >= RESYNC_MS) {
      this.resync();
      if (this.#unreached.size > 0)
        void this.#reachEngines().catch((error: unknown) =>
          this.#parts.log.warn({ err: error }, 'pods could not be taken up; trying again'),
        );
    }
    if (now - this.#tidiedAt < TIDY_EVERY_MS) return;
    this.#tidiedAt = now;
    this.#tidy(this.#parts.volumeDisks.retry());
    this.#tidy(this.#parts.store.forget(now - KEEP_TERMINATED_MS));
  }

  /** Nobody waits for this, and what fails is tried another time. */
  #tidy(work: Promise<void>): void {
    work.catch(
      (error: unknown) =>
        this.#closed ||
        this.#parts.log.warn({ err: error }, 'what is left of terminated pods could not be looked after'),
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
    const { store, engines } = this.#parts;
    const active = await store.active();
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
        this.#parts.log.warn({ err: error }, 'an engine does not answer; its pods are taken up when it does');
      }
    }
    for (const pod of active.filter(({ dataCenterId }) => !engines.has(dataCenterId)))
      this.#parts.log.warn(
        { podId: pod.id, dataCenterId: pod.dataCenterId },
        'the data center of a pod is not connected',
      );
  }

  #takeUp(pod: Pod, instance: Instance | undefined): void {
    if (instance !== undefined) {
      this.#instances.found(pod.id);
      this.#found.set(pod.id, instance);
    }
    if (nextStep(pod, instance) !== 'nothing') return this.poke(pod.id);
    this.#found.delete(pod.id);
  }

  async #removeStrays(engine: InstanceEngine, instances: ReadonlyMap<string, Instance>): Promise<void> {
    for (const { id, status } of instances.values()) {
      const pod = await this.#parts.store.findAnywhere(id);
      // A pod that is stopped keeps its last instance, for its log.
      if (
        pod !== undefined &&
        pod.wanted !== 'terminated' &&
        (status === 'exited' || this.#parts.engines.get(pod.dataCenterId) === undefined)
      )
        continue;
      this.#parts.log.warn({ instance: id }, 'an instance that no pod has is removed');
      await engine.remove(id, 0);
    }
  }

  // Looking at one pod.

  async #look(podId: string): Promise<void> {
    const pod = await this.#parts.store.findAnywhere(podId);
    const engine = pod && this.#parts.engines.get(pod.dataCenterId);
    if (pod === undefined || engine === undefined || this.#unreached.has(engine)) return;
    for (const instant of [pod.stopAfter, pod.terminateAfter])
      this.#nextDue = Math.min(this.#nextDue, instant ?? Infinity);
    const instance = await this.#instanceOf(pod, engine);
    const step = nextStep(pod, instance);
    this.#found.delete(podId);
    await this.#instances.take(step, pod, engine, instance);
  }

  async #instanceOf(pod: Pod, engine: InstanceEngine): Promise<Instance | undefined> {
    const known =
      pod.handle === null ? undefined : await engine.adopt(JSON.parse(pod.handle) as InstanceHandle);
    return known ?? this.#found.get(pod.id);
  }

  // Given instants.

  async #runDue(now: number): Promise<void> {
    const { store } = this.#parts;
    this.#nextDue = Infinity;
    for (const pod of await store.due(now)) {
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
          record: isLast ? terminated(current, now) : stopped(current, now, 'Stopping at its given instant'),
          audit,
        }));
      } catch (error) {
        if (!(error instanceof BerthError) || error.code !== 'state') throw error;
      }
      this.poke(pod.id);
      this.#parts.onChanged(pod.id);
    }
    this.#nextDue = Math.min(this.#nextDue, (await store.nextDue()) ?? Infinity);
  }
}
