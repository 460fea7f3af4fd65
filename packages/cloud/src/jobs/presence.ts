import type { Job } from '../store/job-records.ts';
import type { JobStore, WorkerRecord } from '../store/jobs.ts';
import { isRecent } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { PairMap } from '../support/pair-map.ts';
import { SteadyMap } from '../support/steady-map.ts';

/** Three missed pings: a worker that has said nothing for this long is taken for dead. */
export const SILENT_MS = 30_000;
/** How long evidence must stand that a worker no longer has a job before the job is given up. */
const DOUBT_MS = 15_000;
/** How often what was seen is written down for the other servers. */
const NOTE_EVERY_MS = 5_000;
/** A worker that waits, and of which nothing changes, is written down less often: half as long as silence may last. */
const NOTE_WAITING_EVERY_MS = 15_000;
/** A silent worker is of no use to anybody from here on. */
const KEEP_SILENT_MS = 2 * SILENT_MS;
/** One that was dismissed would get jobs again if it came back. Whoever ends it says so; where that never happens, it has ended by now. */
const KEEP_DISMISSED_MS = 24 * 3_600_000;

type HeldJob = Pick<Job, 'seq' | 'id' | 'lease'>;

interface Held {
  jobId: string;
  seq: number;
  /** Of the attempt that all this is about. */
  lease: string;
  since: number;
  /** The worker has shown that it has the job. */
  shown: boolean;
  /** Since when the worker says things that do not fit with having it. */
  doubtSince: number | null;
}

/** A job that its living worker evidently no longer has. */
interface LostJob {
  endpointId: string;
  workerId: string;
  seq: number;
  lease: string;
  /** The worker had shown that it has it. */
  shown: boolean;
}

interface Worker {
  endpointId: string;
  workerId: string;
  seenAt: number;
  /** Requests of it that are open now. */
  open: number;
  lastTakeAt: number;
  /** When its own loop last said something. Pings may come from another process. */
  activeAt: number;
  /** Gets no job before this time. */
  restsUntil: number;
  unhealthy: string | null;
  /** The most jobs that it said it runs at a time; Infinity where it does not say. */
  places: number;
  /** In the order in which they came to it. */
  jobs: SteadyMap<number, Held>;
  /** A job came to it at some time. */
  worked: boolean;
  noted: boolean;
  /** When it was last written down while it waited, and how. */
  notedAt: number;
  notedAs: string;
}

/**
 * Who works here. A worker is alive as long as anything is heard of it, by any of its
 * requests. A ping proves little: one can outlive its worker, and one can be missing while
 * the worker is busy. So a job is given up only on evidence that is specific to it: the worker
 * asked for work anew, says that it runs nothing or leaves the job out of its list, and sticks
 * to that.
 */
export class Presence {
  readonly #clock: Clock;
  readonly #workers = new PairMap<string, string, Worker>();
  /** Since when this server listens: what workers said before may not have been heard. */
  #awakeSince: number;
  /** What the clock said when it was last looked at. */
  #lookedAt: number;
  #notedAt = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#awakeSince = clock.now();
    this.#lookedAt = this.#awakeSince;
  }

  /** The time that all this goes by. */
  now(): number {
    return this.#clock.now();
  }

  /** Anything was heard of a worker. Call the answer when its request ends. */
  enter(endpointId: string, workerId: string): () => void {
    const worker = this.seen(endpointId, workerId);
    worker.open += 1;
    return () => {
      worker.open -= 1;
      worker.seenAt = this.#clock.now();
    };
  }

  seen(endpointId: string, workerId: string): Worker {
    let worker = this.#workers.get(endpointId, workerId);
    if (worker === undefined) {
      worker = {
        endpointId,
        workerId,
        seenAt: 0,
        open: 0,
        lastTakeAt: 0,
        activeAt: 0,
        restsUntil: 0,
        unhealthy: null,
        places: Infinity,
        jobs: new SteadyMap(),
        worked: false,
        noted: false,
        notedAt: 0,
        notedAs: '',
      };
      this.#workers.set(endpointId, workerId, worker);
    }
    worker.seenAt = this.#clock.now();
    worker.noted = false;
    return worker;
  }

  /** It asks for work. `idle`: it says that it runs nothing. */
  asksForWork(endpointId: string, workerId: string, idle: boolean): void {
    const worker = this.seen(endpointId, workerId);
    worker.lastTakeAt = this.#clock.now();
    worker.activeAt = worker.lastTakeAt;
    // A worker whose check failed ends; whoever asks under its name has started anew.
    worker.unhealthy = null;
    if (idle) for (const held of worker.jobs.values()) this.#doubt(held);
  }

  /** It runs so many jobs at a time. What runs goes on where there are fewer places than before, so the most of them counts. */
  hasPlaces(endpointId: string, workerId: string, places: number): void {
    const worker = this.seen(endpointId, workerId);
    worker.places = worker.places === Infinity ? places : Math.max(worker.places, places);
  }

  /** What it cannot have begun: it begins jobs in the order in which they come, as many at a time as it has places. */
  notBegun(endpointId: string, workerId: string): { seq: number; lease: string }[] {
    const worker = this.#workers.get(endpointId, workerId);
    return worker === undefined || worker.jobs.size <= worker.places
      ? []
      : [...worker.jobs.values()].slice(worker.places);
  }

  /** It lists what it runs; where it runs more than fits, a part of that, which says nothing about the others. */
  lists(endpointId: string, workerId: string, jobIds: readonly string[], isWhole = true): void {
    const worker = this.seen(endpointId, workerId);
    const listed = new Set(jobIds);
    for (const held of worker.jobs.values()) {
      if (listed.has(held.jobId)) this.#trust(held);
      else if (isWhole && worker.lastTakeAt > held.since) this.#doubt(held);
    }
  }

  /** It showed that it has this job: a chunk, some progress. */
  showsJob(endpointId: string, workerId: string, seq: number): void {
    const worker = this.seen(endpointId, workerId);
    worker.activeAt = this.#clock.now();
    const held = worker.jobs.get(seq);
    if (held !== undefined) this.#trust(held);
  }

  /** It was given jobs, just now or, after a restart, some time ago: from now on it has time to show them. */
  given(endpointId: string, workerId: string, ...jobs: readonly HeldJob[]): void {
    const worker = this.seen(endpointId, workerId);
    const now = this.#clock.now();
    for (const job of jobs) worker.jobs.set(job.seq, heldSince(job, now));
    worker.worked = true;
  }

  /** What all workers hold, as the store said at `asOf`. Of those that are known here, what came to them elsewhere is known from now on, and what has ended elsewhere is not. */
  compare(running: readonly Job[], asOf: number): void {
    const holdings = Map.groupBy(running, ({ endpointId, workerId }) => `${endpointId} ${workerId}`);
    this.#workers.forEach((worker) => {
      const { endpointId, workerId: id, jobs } = worker;
      if (jobs.size === 0 && holdings.size === 0) return;
      const holding = new Map(holdings.get(`${endpointId} ${id}`)?.map((job) => [job.seq, job]));
      for (const [seq, { since, lease }] of jobs)
        if (since < asOf && holding.get(seq)?.lease !== lease) jobs.delete(seq);
      for (const job of holding.values())
        if (!jobs.has(job.seq)) jobs.set(job.seq, heldSince(job, Math.min(job.takenAt ?? asOf, asOf)));
      if (jobs.size > 0) worker.worked = true;
    });
  }

  released(endpointId: string, workerId: string | null, seq: number): void {
    if (workerId !== null) this.#workers.get(endpointId, workerId)?.jobs.delete(seq);
  }

  unhealthy(endpointId: string, workerId: string, reason: string): void {
    // PostgreSQL keeps no text with a NUL.
    this.seen(endpointId, workerId).unhealthy = reason.replaceAll('\0', '');
  }

  /** No new jobs for a while: it asked to be replaced. */
  rest(endpointId: string, workerId: string, milliseconds: number): void {
    this.seen(endpointId, workerId).restsUntil = this.#clock.now() + milliseconds;
  }

  rests(endpointId: string, workerId: string): boolean {
    return (this.#workers.get(endpointId, workerId)?.restsUntil ?? 0) > this.#clock.now();
  }

  /** What is known of a worker here; undefined before it was first heard of. */
  view(
    endpointId: string,
    workerId: string,
  ): { busy: number; worked: boolean; unhealthy: string | null } | undefined {
    const worker = this.#workers.get(endpointId, workerId);
    return worker === undefined || worker.seenAt === 0
      ? undefined
      : { busy: worker.jobs.size, worked: worker.worked, unhealthy: worker.unhealthy };
  }

  /** No new jobs ever: it is on its way out. */
  dismiss(endpointId: string, workerId: string): void {
    this.rest(endpointId, workerId, Infinity);
  }

  /** It has ended. */
  forget(endpointId: string, workerId: string): void {
    this.#workers.delete(endpointId, workerId);
  }

  /** This server itself was away for a while: what workers said meanwhile is still to be read, and they have time to show themselves. */
  awake(): void {
    this.#awakeSince = this.#clock.now();
  }

  /**
   * To be called now and then: notices that the clock was set back. What was seen before would lie ahead, and
   * last until the clock has caught up. It counts as seen now, so that nothing lasts much longer than it would have.
   */
  lookAtClock(): void {
    const now = this.#clock.now();
    const setBackBy = this.#lookedAt - now;
    this.#lookedAt = now;
    if (setBackBy <= 0) return;
    this.#awakeSince = Math.min(this.#awakeSince, now);
    this.#workers.forEach((worker) => {
      worker.seenAt = Math.min(worker.seenAt, now);
      worker.lastTakeAt = Math.min(worker.lastTakeAt, now);
      worker.activeAt = Math.min(worker.activeAt, now);
      worker.restsUntil -= setBackBy;
      worker.noted = false;
      for (const held of worker.jobs.values()) {
        held.since = Math.min(held.since, now);
        if (held.doubtSince !== null) held.doubtSince = Math.min(held.doubtSince, now);
      }
    });
  }

  /** It has started anew, or come back. Whether it still wants to be replaced it says itself. */
  returns(endpointId: string, workerId: string): void {
    const worker = this.seen(endpointId, workerId);
    if (worker.restsUntil !== Infinity) worker.restsUntil = 0;
  }

  /** Undefined where this server has never heard of it: another one may have. */
  lives(endpointId: string, workerId: string): boolean | undefined {
    const now = this.#clock.now();
    const worker = this.#workers.get(endpointId, workerId);
    if (worker === undefined) return now - this.#awakeSince < SILENT_MS ? true : undefined;
    return worker.open > 0 || now - Math.max(worker.seenAt, this.#awakeSince) < SILENT_MS;
  }

  /** Nothing of it is open, and nothing was heard of it since. */
  goneSince(endpointId: string, workerId: string, since: number): boolean {
    const worker = this.#workers.get(endpointId, workerId);
    return worker === undefined || (worker.open === 0 && worker.seenAt <= since);
  }

  /** When its own loop last asked for work or sent something of a job; 0 where that was never heard here. */
  activeAt(endpointId: string, workerId: string): number {
    return this.#workers.get(endpointId, workerId)?.activeAt ?? 0;
  }

  /** Whether it holds a job that was submitted before this one. */
  holdsEarlier(endpointId: string, workerId: string, seq: number): boolean {
    return [...(this.#workers.get(endpointId, workerId)?.jobs.keys() ?? [])].some((held) => held < seq);
  }

  /** Jobs that their living worker evidently no longer has. */
  lostJobs(): LostJob[] {
    const now = this.#clock.now();
    const lost: LostJob[] = [];
    this.#workers.forEach(({ endpointId, workerId, jobs }) => {
      if (jobs.size === 0) return;
      for (const { seq, lease, shown, doubtSince } of jobs.values()) {
        if (doubtSince !== null && now - Math.max(doubtSince, this.#awakeSince) >= DOUBT_MS)
          lost.push({ endpointId, workerId, seq, lease, shown });
      }
    });
    return lost;
  }

  /** Tells the other servers who was seen, now and then; forgets who has not been for long. */
  async note(store: Pick<JobStore, 'noteWorkers'>): Promise<void> {
    const now = this.#clock.now();
    if (isRecent(this.#notedAt, NOTE_EVERY_MS, now)) return;
    this.#notedAt = now;
    const telling: { worker: Worker; asWaiting: string; record: WorkerRecord }[] = [];
    for (const worker of this.#workers.values()) {
      if (worker.open > 0) worker.seenAt = now;
      else if (now - worker.seenAt > keptFor(worker) && worker.jobs.size === 0)
        this.#workers.delete(worker.endpointId, worker.workerId);
      if (worker.noted && worker.open === 0) continue;
      const asWaiting = worker.open > 0 ? `${worker.jobs.size} ${worker.unhealthy ?? ''}` : '';
      if (
        asWaiting !== '' &&
        asWaiting === worker.notedAs &&
        isRecent(worker.notedAt, NOTE_WAITING_EVERY_MS, now)
      )
        continue;
      // What is heard from here on is told the next time.
      worker.noted = true;
      telling.push({
        worker,
        asWaiting,
        record: {
          endpointId: worker.endpointId,
          workerId: worker.workerId,
          seenAt: worker.seenAt,
          busy: worker.jobs.size,
          unhealthy: worker.unhealthy,
        },
      });
    }
    if (telling.length === 0) return;
    try {
      await store.noteWorkers(telling.map(({ record }) => record));
    } catch (error) {
      for (const { worker } of telling) worker.noted = false;
      throw error;
    }
    for (const { worker, asWaiting } of telling) {
      worker.notedAt = now;
      worker.notedAs = asWaiting;
    }
  }

  /** The workers of an endpoint that are alive as far as this server knows. */
  here(endpointId: string): WorkerRecord[] {
    const now = this.#clock.now();
    return [...this.#workers.of(endpointId)]
      .filter((worker) => worker.open > 0 || now - worker.seenAt < SILENT_MS)
      .map(({ workerId, seenAt, jobs, unhealthy }) => ({
        endpointId,
        workerId,
        seenAt,
        busy: jobs.size,
        unhealthy,
      }));
  }

  forgetEndpoint(endpointId: string): void {
    this.#workers.deleteAll(endpointId);
  }

  #trust(held: Held): void {
    held.shown = true;
    held.doubtSince = null;
  }

  #doubt(held: Held): void {
    held.doubtSince ??= this.#clock.now();
  }
}

/** How long a worker is remembered that holds nothing and says nothing. */
function keptFor({ restsUntil }: Worker): number {
  return restsUntil === Infinity ? KEEP_DISMISSED_MS : KEEP_SILENT_MS;
}

function heldSince({ seq, id, lease }: HeldJob, since: number): Held {
  return { jobId: id, seq, lease: lease ?? '', since, shown: false, doubtSince: null };
}
