import { isRecent } from '../../support/clock.ts';
import { IDLE_CHECK_INTERVAL_MS } from '../reconcile-settings.ts';
import { hasRecovered, NO_CRASHES, describeCrashes } from './crash-backoff.ts';
import type { CrashHistory } from './crash-backoff.ts';
import { activityOf, isActive, isIdleOrLaunching, trackWorker } from './tracked-worker.ts';
import type { TrackedWorker } from './tracked-worker.ts';
import type { ScaledWorker } from '../../domain/endpoints/worker-scaling.ts';
import type { Worker } from '../../domain/endpoints/worker-record.ts';

/** What is known of the workers of one endpoint. It need not survive a restart. */
export class EndpointWorkerSet {
  readonly endpointId: string;
  readonly #workers = new Map<string, TrackedWorker>();
  readonly #allWorkers: Map<string, TrackedWorker> | undefined;
  crashes: CrashHistory = NO_CRASHES;
  /** The version of the endpoint that was last reconciled; null if its owner has changed it since. */
  #version: number | null | undefined;
  /** Why the last worker could not be placed; undefined if it could. */
  placementFailure: string | undefined;
  /** How many workers could not be placed. */
  throttled = 0;
  /** Requests in flight and waiting, as the gateway counts them. */
  demand = 0;
  /** How many times jobs were queued since the set was created. */
  #queuings = 0;
  #rest: { queuings: number; workersMin: number; since: number } | undefined;

  /** `allWorkers` has those of all endpoints, by id. */
  constructor(endpointId: string, allWorkers?: Map<string, TrackedWorker>) {
    this.endpointId = endpointId;
    this.#allWorkers = allWorkers;
  }

  get workers(): ReadonlyMap<string, TrackedWorker> {
    return this.#workers;
  }

  /** Its owner changed or deployed it, perhaps with the same content: what failed is tried again at once. */
  onEndpointChanged(): void {
    this.#version = null;
  }

  /** Returns whether the version is new here. What an earlier one crashed of need not hold for it. */
  setVersion(version: number): boolean {
    if (this.#version === version) return false;
    if (this.#version !== undefined) this.crashes = NO_CRASHES;
    this.#version = version;
    return true;
  }

  onJobQueued(): void {
    this.#queuings += 1;
  }

  /** To be asked before the load is read: a job may be queued while it is. */
  get queuings(): number {
    return this.#queuings;
  }

  /** It was found without load, with this many workers to keep. */
  setIdle(rest: { queuings: number; workersMin: number; since: number } | undefined): void {
    this.#rest = rest;
  }

  /**
   * Whether nothing has changed since it was last found without load, and with as many workers as it keeps, idle
   * or being started: then there is nothing to do for it.
   */
  get isIdle(): boolean {
    const rest = this.#rest;
    return (
      rest !== undefined &&
      rest.queuings === this.#queuings &&
      this.#version !== null &&
      this.crashes.count === 0 &&
      this.placementFailure === undefined &&
      this.workers.size === rest.workersMin &&
      [...this.workers.values()].every(isIdleOrLaunching)
    );
  }

  /** Whether it has been idle for so long that it must be checked again. */
  isIdleCheckDue(now: number): boolean {
    return this.#rest === undefined || !isRecent(this.#rest.since, IDLE_CHECK_INTERVAL_MS, now);
  }

  add(record: Worker): TrackedWorker {
    const worker = trackWorker(record);
    this.#workers.set(record.id, worker);
    this.#allWorkers?.set(record.id, worker);
    return worker;
  }

  remove(id: string): void {
    this.#workers.delete(id);
    this.#allWorkers?.delete(id);
  }

  /** Whether a worker takes work, or will soon. */
  get hasActiveWorker(): boolean {
    return [...this.workers.values()].some(isActive);
  }

  clearPlacementFailure(): void {
    this.placementFailure = undefined;
    this.throttled = 0;
  }

  setPlacementFailure(count: number, reason: string): void {
    this.placementFailure = reason;
    this.throttled = count;
  }

  resetCrashesIfRecovered(waiting: number, now: number): void {
    const readySince = [...this.workers.values()].flatMap(({ record }) =>
      record.state === 'ready' && record.readyAt !== null ? [record.readyAt] : [],
    );
    if (
      this.crashes.count > 0 &&
      hasRecovered(this.crashes, { readySince, isAbandoned: waiting === 0 && this.workers.size === 0, now })
    )
      this.crashes = NO_CRASHES;
  }

  scalerInput(): ScaledWorker[] {
    return [...this.workers.values()].map(({ record, busy, idleSince }) => ({
      id: record.id,
      state: record.state === 'starting' || record.state === 'ready' ? record.state : 'leaving',
      busy,
      idleSince,
    }));
  }

  counts(): {
    idle: number;
    initializing: number;
    ready: number;
    running: number;
    throttled: number;
    unhealthy: number;
  } {
    const count = { idle: 0, initializing: 0, running: 0, unhealthy: 0 };
    let live = 0;
    for (const worker of this.workers.values()) {
      const activity = activityOf(worker);
      if (activity === undefined) continue;
      count[activity] += 1;
      live += 1;
    }
    return {
      ...count,
      ready: count.idle + count.running,
      throttled: this.throttled,
      unhealthy: count.unhealthy + (this.crashes.count > 1 && live === 0 ? 1 : 0),
    };
  }

  /**
   * Why no worker can take a job now; undefined if one can. An image that no engine can run is reported even
   * before a worker is needed.
   */
  reason(workersMax: number, imageProblem: () => string | undefined = () => undefined): string | undefined {
    const workers = [...this.workers.values()];
    if (workers.some(({ record }) => record.state === 'ready')) return undefined;
    if (workersMax === 0) return 'no worker is wanted: the maximum of this endpoint is 0';
    if (this.crashes.count > 0) return describeCrashes(this.crashes);
    if (this.placementFailure !== undefined) return placementFailureMessage(this.placementFailure);
    const starting = workers.filter(({ record }) => record.state === 'starting');
    if (starting.length > 0) {
      const progress = starting.find(
        (worker) => worker.runningSince === null && worker.progress !== null,
      )?.progress;
      return (
        `${starting.length === 1 ? 'a worker is' : `${starting.length} workers are`} ` +
        `starting${progress === undefined ? '' : `: ${progress}`}`
      );
    }
    const problem = imageProblem();
    return problem === undefined ? 'no worker wanted yet' : placementFailureMessage(problem);
  }
}

function placementFailureMessage(reason: string): string {
  return `no worker can be placed: ${reason}`;
}
