import type { InstanceEngine } from '../engines/engine.ts';
import { monotonicNow } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { BerthError } from '../support/errors.ts';
import type { Log } from '../support/log.ts';
import { EngineConnections, type InstanceOwner } from './engine-connections.ts';
import { ReconcileQueue } from './reconcile-queue.ts';
import {
  CLEANUP_INTERVAL_MS,
  CLOSE_TIMEOUT_MS,
  ENGINE_SWEEP_MS,
  RESYNC_MS,
  SWEEP_MS,
  TICK_MS,
} from './reconcile-settings.ts';

/** What differs between workers, reconciled by endpoint, and pods, reconciled one by one. */
export interface ReconcilePolicy extends InstanceOwner {
  /** The log field for the ids that it reconciles. */
  readonly idField: string;
  /** Brings this id one step from its actual to its desired state. Doing that twice does no harm. */
  reconcile(id: string): Promise<void>;
  /** Ids that are not reconciled for now. */
  isSuspended?(id: string): boolean;
  /** Something about this id changed while it is being reconciled. */
  onChangedWhileReconciling?(id: string): void;
  /** Asked at every tick. */
  listDue(now: number): Promise<Iterable<string>>;
  /** All ids that may not be in their desired state. */
  listUnreconciled(): Promise<Iterable<string>>;
  /** Deletes what is kept for a limited time only. */
  cleanUp(now: number): Promise<void>;
  /** This server has become the leader. */
  start?(): void;
  /** It no longer is: everything in memory is out of date. */
  stop(): void;
  /** Resolves when work outside of `reconcile` is done. */
  whenIdle?(): Promise<void>;
}

export interface ReconcilerDeps {
  /** By data center. */
  engines: ReadonlyMap<string, InstanceEngine>;
  clock: Clock;
  log: Log;
  /** Whether this server still leads, where another one may have taken over meanwhile. */
  isLeader?: () => boolean;
}

/**
 * Brings the actual state of instances to their desired state. It reconciles an id when something
 * happened to it (its owner changed it, an instance ended, it is due) and regularly while it is not
 * in its desired state. Desired state is stored, every step is idempotent by instance id, and engines
 * are listed before anything is started: a restarted server, or another one, continues with the
 * instances that run. Only the leading server reconciles, between `start` and `pause`.
 */
export class Reconciler<Policy extends ReconcilePolicy = ReconcilePolicy> {
  readonly policy: Policy;
  readonly queue: ReconcileQueue;
  readonly #deps: ReconcilerDeps;
  readonly #connections: EngineConnections;
  #timer: NodeJS.Timeout | undefined;
  #resyncedAt = -Infinity;
  #cleanedUpAt = -Infinity;
  #sweptAt = -Infinity;
  #adoptedAt = -Infinity;
  #isClosed = false;

  constructor(deps: ReconcilerDeps, createPolicy: (reconciler: Reconciler) => Policy) {
    this.#deps = deps;
    this.queue = new ReconcileQueue({
      reconcile: (id) => this.policy.reconcile(id),
      isEnabled: (id) => this.isLeading && this.policy.isSuspended?.(id) !== true,
      onError: (error, id) => this.#logFailure(error, 'reconciling failed; trying again', id),
    });
    this.policy = createPolicy(this);
    this.#connections = new EngineConnections({
      ...deps,
      owner: this.policy,
      enqueue: (id) => this.queue.enqueue(id),
    });
  }

  get isLeading(): boolean {
    return !this.#isClosed && this.#connections.isOpen && this.#deps.isLeader?.() !== false;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Whether the instances of a data center are known, so that others may be started there. */
  isConnected(dataCenterId: string): boolean {
    return this.#connections.isConnected(dataCenterId);
  }

  /** Adopts the instances that run and begins to reconcile. */
  async start(): Promise<void> {
    if (this.#isClosed) return;
    this.#resyncedAt = this.#cleanedUpAt = -Infinity;
    this.#sweptAt = this.#adoptedAt = monotonicNow(this.#deps.clock);
    this.policy.start?.();
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    await this.#connections.open();
  }

  /** A data center was added. */
  connectDataCenter(dataCenterId: string): Promise<void> {
    return this.#connections.connect(dataCenterId);
  }

  /** Something about this id changed: reconciles it now. */
  wake(id: string): void {
    if (!this.isLeading) return;
    if (this.queue.isRunning(id)) this.policy.onChangedWhileReconciling?.(id);
    this.queue.enqueue(id);
  }

  /** Wake-ups may have been missed: reconciles everything that is not in its desired state. */
  resync(): void {
    if (!this.isLeading) return;
    this.#resyncedAt = monotonicNow(this.#deps.clock);
    this.#wakeAll(this.policy.listUnreconciled());
  }

  /** Another server is the leader now. Instances continue. */
  pause(): void {
    clearInterval(this.#timer);
    this.#connections.close();
    this.policy.stop();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.pause();
    const timeout = new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref());
    await Promise.race([Promise.all([this.queue.whenAllDone(), this.policy.whenIdle?.()]), timeout]);
  }

  #tick(): void {
    const { clock } = this.#deps;
    // Not the time of day: when that is set back, nothing of this may wait until it has caught up.
    const monotonic = monotonicNow(clock);
    this.#wakeAll(this.policy.listDue(clock.now()));
    if (monotonic - this.#resyncedAt >= RESYNC_MS) this.resync();
    if (this.#deps.isLeader !== undefined && monotonic - this.#sweptAt >= SWEEP_MS) this.#sweep(monotonic);
    if (monotonic - this.#adoptedAt >= ENGINE_SWEEP_MS) {
      this.#adoptedAt = monotonic;
      this.#connections
        .adoptAgain()
        .catch((error: unknown) =>
          this.#logFailure(error, 'engines could not be checked; trying again later'),
        );
    }
    if (monotonic - this.#cleanedUpAt < CLEANUP_INTERVAL_MS) return;
    this.#cleanedUpAt = monotonic;
    this.policy
      .cleanUp(clock.now())
      .catch((error: unknown) => this.#logFailure(error, 'cleaning up failed; trying again later'));
  }

  #wakeAll(listing: Promise<Iterable<string>>): void {
    listing.then(
      (ids) => {
        for (const id of ids) this.wake(id);
      },
      (error: unknown) => this.#logFailure(error, 'what to reconcile could not be listed; trying again'),
    );
  }

  /** A server that led before may have started an instance after this one had listed them. */
  #sweep(now: number): void {
    this.#sweptAt = now;
    this.#connections
      .sweep()
      .catch((error: unknown) =>
        this.#logFailure(error, 'orphaned instances could not be found; trying again later'),
      );
  }

  /** What fails because the server closes is no failure. */
  #logFailure(error: unknown, message: string, id?: string): void {
    if (this.#isClosed) return;
    const { kind, idField } = this.policy;
    const fields = { err: error, kind, ...(id !== undefined && { [idField]: id }) };
    if (error instanceof BerthError && error.code !== 'internal') this.#deps.log.warn(fields, message);
    else this.#deps.log.error(fields, message);
  }
}
