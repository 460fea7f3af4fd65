import { isRecent } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { PairMap } from '../support/pair-map.ts';
import type { Departure } from './departure.ts';
import { Waiters } from './waiters.ts';

/** A worker forgets what it was told about a job that it has not begun, so it is told again, at this pace. */
const REPEAT_MS = 3_000;
/** A worker that still runs a job this long after it was told to stop it cannot be stopped by words. */
const STUBBORN_MS = 15_000;
/** After this the worker has heard it, or never will. */
const GIVE_UP_MS = 60_000;

interface Stop {
  addedAt: number;
  toldAt: number;
}

/** What one worker shall stop, by job. */
class WorkerStops extends Map<string, Stop> {
  readonly endpointId: string;
  readonly workerId: string;

  constructor(endpointId: string, workerId: string) {
    super();
    this.endpointId = endpointId;
    this.workerId = workerId;
  }
}

/** Which jobs each worker shall stop, and the workers that wait to hear of one. */
export class StopList {
  readonly #clock: Clock;
  readonly #stops = new PairMap<string, string, WorkerStops>();
  readonly #waiters = new Waiters<string>();
  #clearedAt = -Infinity;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(endpointId: string, workerId: string, jobId: string): void {
    this.#clear();
    const stops = this.#stops.get(endpointId, workerId) ?? new WorkerStops(endpointId, workerId);
    this.#stops.set(endpointId, workerId, stops);
    if (!stops.has(jobId)) stops.set(jobId, { addedAt: this.#clock.now(), toldAt: -Infinity });
    this.#waiters.wake(endpointId, workerId);
  }

  /** What to tell the worker, as soon as there is something. */
  wait(endpointId: string, workerId: string, milliseconds: number, signal: Departure): Promise<string[]> {
    const now = this.due(endpointId, workerId);
    if (now.length > 0 || milliseconds === 0) return Promise.resolve(now);
    return this.#waiters.wait(endpointId, workerId, Math.min(milliseconds, this.#nextIn(endpointId, workerId)), signal).then(() => this.due(endpointId, workerId));
  }

  /** The worker waits no longer. */
  release(endpointId: string, workerId: string): void {
    this.#waiters.wake(endpointId, workerId);
  }

  /** No worker waits any longer. */
  wakeAll(): void {
    this.#waiters.wakeAll();
  }

  /** How many workers have something to stop. */
  get size(): number {
    return this.#stops.size;
  }

  /** The job is over for the worker too: it posted a result, no longer lists it, or was given it anew. */
  settle(endpointId: string, workerId: string, jobId: string): void {
    const stops = this.#stops.get(endpointId, workerId);
    stops?.delete(jobId);
    if (stops?.size === 0) this.#stops.delete(endpointId, workerId);
  }

  /** What the worker lists is still running there; what it was told and does not list is settled. */
  listed(endpointId: string, workerId: string, jobIds: readonly string[]): void {
    const stops = this.#stops.get(endpointId, workerId);
    if (stops === undefined) return;
    for (const [jobId, { toldAt }] of stops) if (toldAt > 0 && !jobIds.includes(jobId)) this.settle(endpointId, workerId, jobId);
  }

  /** What to tell the worker now. */
  due(endpointId: string, workerId: string): string[] {
    const now = this.#clock.now();
    const stops = this.#stops.get(endpointId, workerId);
    const told: string[] = [];
    for (const [jobId, stop] of stops ?? []) {
      if (now - stop.addedAt > GIVE_UP_MS) this.settle(endpointId, workerId, jobId);
      else if (now - stop.toldAt >= REPEAT_MS) {
        stop.toldAt = now;
        told.push(jobId);
      }
    }
    return told;
  }

  /** Whether the worker goes on with a job that it was told to stop, here: another server may know better. A handler that never yields hears nothing. */
  isStubborn(endpointId: string, workerId: string): boolean {
    const now = this.#clock.now();
    return [...(this.#stops.get(endpointId, workerId)?.values() ?? [])].some(({ addedAt, toldAt }) => toldAt > 0 && now - addedAt > STUBBORN_MS);
  }

  /** Milliseconds until something has to be said again. */
  #nextIn(endpointId: string, workerId: string): number {
    const now = this.#clock.now();
    let next = Infinity;
    for (const { toldAt } of this.#stops.get(endpointId, workerId)?.values() ?? []) next = Math.min(next, Math.max(0, toldAt + REPEAT_MS - now));
    return next;
  }

  /** A worker that never asks, or asks another server, leaves nothing behind. */
  #clear(): void {
    const now = this.#clock.now();
    if (isRecent(this.#clearedAt, GIVE_UP_MS, now)) return;
    this.#clearedAt = now;
    for (const stops of this.#stops.values()) {
      for (const [jobId, { addedAt }] of stops) if (now - addedAt > GIVE_UP_MS) stops.delete(jobId);
      if (stops.size === 0) this.#stops.delete(stops.endpointId, stops.workerId);
    }
  }
}
