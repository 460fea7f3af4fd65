import { isRecent } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { PairMap } from '../support/pair-map.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';
import { seqFromJobId } from '../domain/job-ids.ts';
import type { WorkerHeartbeats } from './worker-heartbeats.ts';
import { Waiters } from './waiters.ts';

/** A worker forgets what it was told about a job that it has not begun, so it is told again, at this pace. */
const REPEAT_MS = 3_000;
/** A worker that still runs a job this long after it was asked to stop it cannot be stopped by words. */
const IGNORED_AFTER_MS = 15_000;
/** Longer than any poll stays open: a worker whose loop runs has asked for something anew by then. */
const STUCK_MS = 30_000;
/** After this the worker has heard it, or never will. One that still lists the job is not given up. */
const EXPIRE_MS = 60_000;

interface Cancellation {
  addedAt: number;
  sentAt: number;
  sendCount: number;
  /** When the worker last listed the job, since it is to be stopped. */
  listedAt: number;
  /** The last list that came since then does not name the job. */
  isUnlisted: boolean;
}

/** What is known of a worker's own loop. Pings prove nothing about it: another process sends them. */
type WorkerActivity = Pick<WorkerHeartbeats, 'activeAt' | 'holdsEarlierJob'>;

/** What one worker shall stop, by job. */
class WorkerCancellations extends Map<string, Cancellation> {
  readonly endpointId: string;
  readonly workerId: string;
  /** When the worker itself last asked what to stop. */
  polledAt = -Infinity;
  #lastPoll: CancelSignal | undefined;

  constructor(endpointId: string, workerId: string) {
    super();
    this.endpointId = endpointId;
    this.workerId = workerId;
  }

  /** Each poll of a worker departs on its own. A channel asks again and again with one departure, and its worker need not live for that. */
  recordPoll(poll: CancelSignal, now: number): void {
    if (this.#lastPoll !== undefined && this.#lastPoll !== poll) this.polledAt = now;
    this.#lastPoll = poll;
  }
}

/** Which jobs each worker shall stop, and the workers that wait to hear of one. */
export class CancellationRegistry {
  readonly #clock: Clock;
  readonly #loop: WorkerActivity;
  readonly #stops = new PairMap<string, string, WorkerCancellations>();
  readonly #waiters = new Waiters<string>();
  #clearedAt = -Infinity;

  constructor(clock: Clock, loop: WorkerActivity) {
    this.#clock = clock;
    this.#loop = loop;
  }

  add(endpointId: string, workerId: string, jobId: string): void {
    this.#clear();
    const stops = this.#stops.get(endpointId, workerId) ?? new WorkerCancellations(endpointId, workerId);
    this.#stops.set(endpointId, workerId, stops);
    if (!stops.has(jobId))
      stops.set(jobId, {
        addedAt: this.#clock.now(),
        sentAt: -Infinity,
        sendCount: 0,
        listedAt: -Infinity,
        isUnlisted: false,
      });
    this.#waiters.wake(endpointId, workerId);
  }

  /** What to tell the worker, as soon as there is something. */
  waitForDue(
    endpointId: string,
    workerId: string,
    milliseconds: number,
    signal: CancelSignal,
  ): Promise<string[]> {
    this.#stops.get(endpointId, workerId)?.recordPoll(signal, this.#clock.now());
    const now = this.due(endpointId, workerId);
    if (now.length > 0 || milliseconds === 0) return Promise.resolve(now);
    return this.#waiters
      .wait(endpointId, workerId, Math.min(milliseconds, this.#nextIn(endpointId, workerId)), signal)
      .then(() => this.due(endpointId, workerId));
  }

  /** The worker waits no longer. */
  endLongPoll(endpointId: string, workerId: string): void {
    this.#waiters.wake(endpointId, workerId);
  }

  /** Every worker looks again, or leaves where the server stops. */
  wakeAll(): void {
    this.#waiters.wakeAll();
  }

  /** How many workers have something to stop. */
  get size(): number {
    return this.#stops.size;
  }

  /** The job is over for the worker too: it posted a result, no longer lists it, or was given it anew. */
  remove(endpointId: string, workerId: string, jobId: string): void {
    const stops = this.#stops.get(endpointId, workerId);
    stops?.delete(jobId);
    if (stops?.size === 0) this.#stops.delete(endpointId, workerId);
  }

  /**
   * What the worker lists is still running there; what it listed before and does not list now is
   * settled. So is what it was told twice: the first time it may not have read the job yet, but
   * then it has asked again.
   */
  recordRunningJobs(endpointId: string, workerId: string, jobIds: readonly string[]): void {
    const stops = this.#stops.get(endpointId, workerId);
    if (stops === undefined) return;
    for (const [jobId, stop] of stops) {
      stop.isUnlisted = !jobIds.includes(jobId);
      if (!stop.isUnlisted) stop.listedAt = this.#clock.now();
      else if (stop.listedAt > 0 || stop.sendCount > 1) this.remove(endpointId, workerId, jobId);
    }
  }

  /** What to tell the worker now. */
  due(endpointId: string, workerId: string): string[] {
    const now = this.#clock.now();
    const stops = this.#stops.get(endpointId, workerId);
    const told: string[] = [];
    for (const [jobId, stop] of stops ?? []) {
      if (isExpired(stop, now)) this.remove(endpointId, workerId, jobId);
      else if (now - stop.sentAt >= REPEAT_MS) {
        stop.sentAt = now;
        stop.sendCount += 1;
        told.push(jobId);
      }
    }
    return told;
  }

  /**
   * Whether the worker goes on with a job that it shall stop. A handler that never yields hears
   * nothing, and old workers never ask, so it need not have been told: it is enough that it
   * still lists the job. One that lists nothing goes on if it was told here and has said nothing
   * since; if it was not, it may speak to another server.
   */
  ignoresCancellation(endpointId: string, workerId: string): boolean {
    return this.#goesOn(endpointId, workerId).length > 0;
  }

  /**
   * Whether the stopped job keeps the worker from everything else: its loop has not run since it
   * was asked to stop, so its other jobs do not run either. It begins jobs in the order in which
   * they come, so where it holds an earlier one, that may be what it is busy with, and rightly.
   */
  isStuck(endpointId: string, workerId: string): boolean {
    const now = this.#clock.now();
    return this.#goesOn(endpointId, workerId).some(
      ({ jobId, addedAt, aliveAt }) =>
        now - addedAt > STUCK_MS &&
        aliveAt <= addedAt &&
        !this.#loop.holdsEarlierJob(endpointId, workerId, seqFromJobId(jobId) ?? 0),
    );
  }

  /** The jobs with which it goes on, and when its loop last ran for certain. */
  #goesOn(endpointId: string, workerId: string): { jobId: string; addedAt: number; aliveAt: number }[] {
    const stops = this.#stops.get(endpointId, workerId);
    if (stops === undefined) return [];
    const now = this.#clock.now();
    const aliveAt = Math.max(stops.polledAt, this.#loop.activeAt(endpointId, workerId));
    const isSilent = ({ addedAt, sentAt, isUnlisted }: Cancellation): boolean =>
      sentAt > 0 && !isUnlisted && aliveAt <= addedAt && now - addedAt > IGNORED_AFTER_MS;
    return [...stops]
      .filter(([, stop]) => stop.listedAt - stop.addedAt > IGNORED_AFTER_MS || isSilent(stop))
      .map(([jobId, { addedAt }]) => ({ jobId, addedAt, aliveAt }));
  }

  /** Milliseconds until something has to be said again. */
  #nextIn(endpointId: string, workerId: string): number {
    const now = this.#clock.now();
    let next = Infinity;
    for (const { sentAt } of this.#stops.get(endpointId, workerId)?.values() ?? [])
      next = Math.min(next, Math.max(0, sentAt + REPEAT_MS - now));
    return next;
  }

  /** A worker that never asks, or asks another server, leaves nothing behind. */
  #clear(): void {
    const now = this.#clock.now();
    if (isRecent(this.#clearedAt, EXPIRE_MS, now)) return;
    this.#clearedAt = now;
    for (const stops of this.#stops.values()) {
      for (const [jobId, stop] of stops) if (isExpired(stop, now)) stops.delete(jobId);
      if (stops.size === 0) this.#stops.delete(stops.endpointId, stops.workerId);
    }
  }
}

function isExpired({ addedAt, listedAt }: Cancellation, now: number): boolean {
  return now - Math.max(addedAt, listedAt) > EXPIRE_MS;
}
