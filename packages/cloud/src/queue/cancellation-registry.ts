import { isRecent, monotonicNow } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { PairMap } from '../support/pair-map.ts';
import type { CancelSignal } from '../support/cancel-signal.ts';
import { seqFromJobId } from '../domain/job-ids.ts';
import type { WorkerHeartbeats } from './worker-heartbeats.ts';
import { Waiters } from './waiters.ts';

/**
 * A worker forgets a cancellation for a job that it has not started, so it is sent again at this interval.
 */
const REPEAT_MS = 3_000;
/** A worker that still runs a job this long after its cancellation does not react to cancellations. */
const IGNORED_AFTER_MS = 15_000;
/** Longer than any poll stays open: a worker whose loop runs has sent a new request by then. */
const STUCK_MS = 30_000;
/**
 * After this the worker has received the cancellation, or never will. Entries for jobs that it still lists
 * are kept.
 */
const EXPIRE_MS = 60_000;

interface Cancellation {
  addedAt: number;
  /** By the monotonic clock, as the timer that sends it again: the server's time may run a little slower. */
  sentAt: number;
  sendCount: number;
  /** When the worker last listed the job since the cancellation. */
  listedAt: number;
  /** The last list since then does not contain the job. */
  isUnlisted: boolean;
}

/** The activity of a worker's own loop. Pings prove nothing about it: another process sends them. */
type WorkerActivity = Pick<WorkerHeartbeats, 'activeAt' | 'holdsEarlierJob'>;

/** The cancellations of one worker, by job. */
class WorkerCancellations extends Map<string, Cancellation> {
  readonly endpointId: string;
  readonly workerId: string;
  /** When the worker itself last polled for cancellations. */
  polledAt = -Infinity;
  #lastPoll: CancelSignal | undefined;

  constructor(endpointId: string, workerId: string) {
    super();
    this.endpointId = endpointId;
    this.workerId = workerId;
  }

  /**
   * Each poll of a worker has its own signal. A channel polls repeatedly with one signal, which does not
   * prove that its worker is alive.
   */
  recordPoll(poll: CancelSignal, now: number): void {
    if (this.#lastPoll !== undefined && this.#lastPoll !== poll) this.polledAt = now;
    this.#lastPoll = poll;
  }
}

/** Which jobs each worker must cancel, and the long polls that wait for one. */
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

  /** The cancellations to send to the worker, as soon as there are any. */
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

  /** Ends the worker's long poll. */
  endLongPoll(endpointId: string, workerId: string): void {
    this.#waiters.wake(endpointId, workerId);
  }

  /** Wakes every long poll: each checks again, or ends where the server stops. */
  wakeAll(): void {
    this.#waiters.wakeAll();
  }

  /** How many workers have cancellations. */
  get size(): number {
    return this.#stops.size;
  }

  /** The job is over for the worker too: it posted a result, no longer lists it, or was given it again. */
  remove(endpointId: string, workerId: string, jobId: string): void {
    const stops = this.#stops.get(endpointId, workerId);
    stops?.delete(jobId);
    if (stops?.size === 0) this.#stops.delete(endpointId, workerId);
  }

  /**
   * Jobs that the worker lists still run there. A job that it listed before and does not list now is done. So
   * is one that was sent twice: at the first time the worker may not have read the job yet, but then it has
   * polled again.
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

  /** The cancellations that are due now. */
  due(endpointId: string, workerId: string): string[] {
    const now = this.#clock.now();
    const sendingAt = monotonicNow(this.#clock);
    const stops = this.#stops.get(endpointId, workerId);
    const dueJobIds: string[] = [];
    for (const [jobId, stop] of stops ?? []) {
      if (isExpired(stop, now)) this.remove(endpointId, workerId, jobId);
      else if (sendingAt - stop.sentAt >= REPEAT_MS) {
        stop.sentAt = sendingAt;
        stop.sendCount += 1;
        dueJobIds.push(jobId);
      }
    }
    return dueJobIds;
  }

  /**
   * Whether the worker continues with a cancelled job. A handler that never yields reads no cancellation, and
   * old workers never poll for them, so it need not have been sent: it is enough that the worker still lists
   * the job. A worker that lists nothing counts if this server sent the cancellation and has heard nothing
   * since; otherwise it may talk to another server.
   */
  ignoresCancellation(endpointId: string, workerId: string): boolean {
    return this.#goesOn(endpointId, workerId).length > 0;
  }

  /**
   * Whether the cancelled job blocks the whole worker: its loop has not run since the cancellation, so its
   * other jobs do not run either. It starts jobs in the order in which they arrive, so where it holds an
   * earlier one, it may rightly be busy with that.
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

  /** The cancelled jobs that it continues with, and when its loop last ran for certain. */
  #goesOn(endpointId: string, workerId: string): { jobId: string; addedAt: number; aliveAt: number }[] {
    const stops = this.#stops.get(endpointId, workerId);
    if (stops === undefined) return [];
    const now = this.#clock.now();
    const aliveAt = Math.max(stops.polledAt, this.#loop.activeAt(endpointId, workerId));
    const isSilent = ({ addedAt, sentAt, isUnlisted }: Cancellation): boolean =>
      sentAt > -Infinity && !isUnlisted && aliveAt <= addedAt && now - addedAt > IGNORED_AFTER_MS;
    return [...stops]
      .filter(([, stop]) => stop.listedAt - stop.addedAt > IGNORED_AFTER_MS || isSilent(stop))
      .map(([jobId, { addedAt }]) => ({ jobId, addedAt, aliveAt }));
  }

  /** Milliseconds until a cancellation has to be sent again. */
  #nextIn(endpointId: string, workerId: string): number {
    const now = monotonicNow(this.#clock);
    let next = Infinity;
    // A timer may fire a fraction of a millisecond early.
    for (const { sentAt } of this.#stops.get(endpointId, workerId)?.values() ?? [])
      next = Math.min(next, Math.max(0, Math.ceil(sentAt + REPEAT_MS - now) + 1));
    return next;
  }

  /** Evicts the entries of workers that never poll, or poll another server. */
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
