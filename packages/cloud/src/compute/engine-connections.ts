import type { InstanceEngine } from '../engines/engine.ts';
import type { Instance, InstanceEvent } from '../engines/instance.ts';
import { BerthError } from '../support/errors.ts';
import type { Log } from '../support/log.ts';
import { RECONNECT_MS } from './reconcile-settings.ts';

/** What the owner of the instances, a reconcile policy, does with an engine. */
export interface InstanceOwner {
  /** The `kind` label of its instances. Others are left alone. */
  readonly kind: string;
  /**
   * Reattaches to what earlier servers left on this engine. Answers the ids to reconcile now.
   * `isCurrent` is false once this server has lost the leadership: nothing may be changed then.
   */
  adopt(
    engine: InstanceEngine,
    instances: ReadonlyMap<string, Instance>,
    isCurrent: () => boolean,
  ): Promise<Iterable<string>>;
  /** Whether `adopt` may be called again while this server leads, and then finds what was lost since. */
  readonly canAdoptAgain?: boolean;
  /** Whether nothing needs this instance. Asked after `adopt`. */
  isOrphan(instance: Instance, engine: InstanceEngine): Promise<boolean>;
  onInstanceExited(event: InstanceEvent): void;
}

export interface EngineConnectionsDeps {
  /** By data center. Data centers may share an engine, and may be added later. */
  engines: ReadonlyMap<string, InstanceEngine>;
  owner: InstanceOwner;
  enqueue(id: string): void;
  log: Log;
}

/**
 * The engines whose instances are known and watched. Nothing may be started in a data center before
 * it is connected: the instance may already be running there.
 */
export class EngineConnections {
  readonly #deps: EngineConnectionsDeps;
  readonly #connected = new Set<string>();
  readonly #watches = new Map<InstanceEngine, EngineWatch>();
  #orphans = new Set<string>();
  /**
   * Attempts to connect, one after the other for each engine. A new map each time that this server becomes
   * the leader; undefined while it is not.
   */
  #attempts: Map<InstanceEngine, Promise<void>> | undefined;

  constructor(deps: EngineConnectionsDeps) {
    this.#deps = deps;
  }

  get isOpen(): boolean {
    return this.#attempts !== undefined;
  }

  isConnected(dataCenterId: string): boolean {
    return this.#connected.has(dataCenterId);
  }

  async open(): Promise<void> {
    this.#attempts = new Map();
    await Promise.all([...new Set(this.#deps.engines.values())].map((engine) => this.#connect(engine)));
  }

  close(): void {
    for (const { stop } of this.#watches.values()) stop();
    this.#watches.clear();
    this.#connected.clear();
    this.#attempts = undefined;
  }

  /** Connects the engine of a data center. An engine that does not answer is tried again until it does. */
  async connect(dataCenterId: string): Promise<void> {
    const engine = this.#deps.engines.get(dataCenterId);
    if (engine !== undefined) await this.#connect(engine);
  }

  /**
   * Removes the instances that were orphans at the last sweep already: another one may be about to be
   * adopted.
   */
  async sweep(): Promise<void> {
    const isCurrent = this.#currentCheck();
    const seen = this.#orphans;
    this.#orphans = new Set();
    for (const engine of new Set(this.#deps.engines.values())) {
      const isConnected = [...this.#deps.engines].some(([id, one]) => one === engine && this.isConnected(id));
      if (!isConnected || !isCurrent()) continue;
      const orphans = await this.#orphansOf(engine, this.#own(await watchedOrListed(engine)));
      for (const { id } of orphans) this.#orphans.add(id);
      await this.#removeOrphans(
        engine,
        orphans.filter(({ id }) => seen.has(id)),
        isCurrent,
      );
    }
  }

  #currentCheck(): () => boolean {
    const attempts = this.#attempts;
    return () => attempts !== undefined && this.#attempts === attempts;
  }

  /**
   * Compares the connected engines with the records again. A server that led before may have started an
   * instance since, and a removal may have failed.
   */
  async adoptAgain(): Promise<void> {
    const { owner, enqueue } = this.#deps;
    const isCurrent = this.#currentCheck();
    if (owner.canAdoptAgain !== true || !isCurrent()) return;
    for (const engine of this.#watches.keys()) {
      if (!this.#isEngineConnected(engine)) continue;
      const { ids, orphans } = await this.#adopt(engine, await watchedOrListed(engine), isCurrent);
      await this.#removeOrphans(engine, orphans, isCurrent);
      if (!isCurrent()) return;
      for (const id of ids) enqueue(id);
    }
  }

  #isEngineConnected(engine: InstanceEngine): boolean {
    return this.#dataCentersOf(engine).every((id) => this.#connected.has(id));
  }

  #dataCentersOf(engine: InstanceEngine): string[] {
    return [...this.#deps.engines].filter(([, one]) => one === engine).map(([id]) => id);
  }

  #own(instances: readonly Instance[]): Instance[] {
    return instances.filter(({ labels }) => labels['kind'] === this.#deps.owner.kind);
  }

  /** Answers the ids to reconcile now, and what nothing needs. */
  async #adopt(
    engine: InstanceEngine,
    instances: readonly Instance[],
    isCurrent: () => boolean,
  ): Promise<Adopted> {
    const { owner } = this.#deps;
    const listed = this.#own(instances);
    if (!isCurrent()) return { ids: [], orphans: [] };
    const ids = await owner.adopt(
      engine,
      new Map(listed.map((instance) => [instance.id, instance])),
      isCurrent,
    );
    return { ids, orphans: isCurrent() ? await this.#orphansOf(engine, listed) : [] };
  }

  async #orphansOf(engine: InstanceEngine, listed: readonly Instance[]): Promise<Instance[]> {
    const orphans: Instance[] = [];
    for (const instance of listed)
      if (await this.#deps.owner.isOrphan(instance, engine)) orphans.push(instance);
    return orphans;
  }

  #connect(engine: InstanceEngine): Promise<void> {
    const attempts = this.#attempts;
    if (attempts === undefined) return Promise.resolve();
    // Another server may become the leader during an attempt, and then this one again.
    const isCurrent = this.#currentCheck();
    const earlier = attempts.get(engine) ?? Promise.resolve();
    const attempt = earlier.then(() => this.#attempt(engine, isCurrent));
    attempts.set(engine, attempt);
    return attempt;
  }

  async #attempt(engine: InstanceEngine, isCurrent: () => boolean): Promise<void> {
    const { owner, enqueue, log } = this.#deps;
    const dataCenterIds = this.#dataCentersOf(engine);
    if (!isCurrent() || dataCenterIds.every((id) => this.#connected.has(id))) return;
    try {
      // Watched before it is listed: otherwise an exit between the two would be missed.
      const watch = this.#watch(engine);
      const orphans = await watch.holdWhile(async () => {
        const adopted = await this.#adopt(engine, await engine.list(), isCurrent);
        if (!isCurrent()) return [];
        for (const id of dataCenterIds) this.#connected.add(id);
        for (const id of adopted.ids) enqueue(id);
        return adopted.orphans;
      });
      // Each may take seconds. What is wanted does not wait for them.
      await this.#removeOrphans(engine, orphans, isCurrent);
    } catch (error) {
      if (!isCurrent()) return;
      for (const id of dataCenterIds) this.#connected.delete(id);
      log.warn(
        { err: error, dataCenterIds, kind: owner.kind },
        'an engine cannot be connected; trying again',
      );
      setTimeout(() => void (isCurrent() && this.#connect(engine)), RECONNECT_MS).unref();
    }
  }

  #watch(engine: InstanceEngine): EngineWatch {
    let watch = this.#watches.get(engine);
    if (watch === undefined) {
      watch = new EngineWatch(engine, (event) => this.#deps.owner.onInstanceExited(event));
      this.#watches.set(engine, watch);
    }
    return watch;
  }

  async #removeOrphans(
    engine: InstanceEngine,
    instances: readonly Instance[],
    isCurrent: () => boolean,
  ): Promise<void> {
    const { owner, log } = this.#deps;
    for (const instance of instances) {
      if (!isCurrent()) return;
      if (!(await owner.isOrphan(instance, engine)) || !isCurrent()) continue;
      log.warn({ instance: instance.id, kind: owner.kind }, 'removing an orphaned instance');
      try {
        await engine.remove(instance.id, 0);
      } catch (error) {
        // One that cannot be removed must not keep everything else from being managed.
        if (error instanceof BerthError && error.code === 'unavailable') throw error;
        log.warn({ err: error, instance: instance.id }, 'an orphaned instance could not be removed');
      }
    }
  }
}

interface Adopted {
  ids: Iterable<string>;
  orphans: Instance[];
}

/** Reports the exits of an engine's instances. */
class EngineWatch {
  readonly stop: () => void;
  readonly #onExited: (event: InstanceEvent) => void;
  /** Exits to be reported when the instances are adopted: before that nobody knows whose they are. */
  #held: InstanceEvent[] | undefined;

  constructor(engine: InstanceEngine, onExited: (event: InstanceEvent) => void) {
    this.#onExited = onExited;
    this.stop = engine.watch((event) => {
      if (event.status !== 'exited') return;
      if (this.#held === undefined) onExited(event);
      else this.#held.push(event);
    });
  }

  async holdWhile<T>(adopt: () => Promise<T>): Promise<T> {
    this.#held = [];
    try {
      return await adopt();
    } finally {
      const held = this.#held;
      this.#held = undefined;
      for (const event of held) this.#onExited(event);
    }
  }
}

/** For what is done again and again: a list of thousands of instances may take a second. */
async function watchedOrListed(engine: InstanceEngine): Promise<Instance[]> {
  return (await engine.watched?.()) ?? engine.list();
}
