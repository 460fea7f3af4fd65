import type { Job } from '../store/job-records.ts';
import type { JobStore } from '../store/jobs.ts';
import { isAhead, isRecent } from '../support/clock.ts';
import type { Clock } from '../support/clock.ts';
import { PairMap } from '../support/pair-map.ts';
import type { JobChanges } from './job-changes.ts';
import type { Presence } from './presence.ts';
import { SILENT_MS } from './presence.ts';
import * as transitions from './transitions.ts';

const TIDY_EVERY_MS = 10 * 60_000;
/** Workers that nobody has heard of for this long are forgotten. */
const FORGET_WORKERS_MS = 3_600_000;
/** So often a job is spared. Which jobs were begun is a guess where results were lost together with their worker, and one that ends its worker must not do so for ever. */
const MOST_SPARED = 10;
const MOST_REMEMBERED = 50_000;

export interface CaretakerParts {
  store: Pick<JobStore, 'due' | 'forgetEnded' | 'running' | 'workers' | 'noteWorkers' | 'tidy'>;
  clock: Clock;
  presence: Presence;
  changes: JobChanges;
  /** Whether an engine runs this worker, where one is known to. */
  instanceRuns?(endpointId: string, workerId: string): Promise<boolean>;
}

/** Looks after jobs that time does something to, and after those that lost their worker. */
export class Caretaker {
  readonly #parts: CaretakerParts;
  /** How often jobs were spared. */
  readonly #spared = new PairMap<string, number, number>();
  #comparedAt = -Infinity;
  #tidiedAt = -Infinity;
  #closed = false;

  constructor(parts: CaretakerParts) {
    this.#parts = parts;
  }

  /** Looks after every job that is due. Answers whether there may be more. */
  async sweep(limit = 500): Promise<boolean> {
    const { store, clock, presence, changes } = this.#parts;
    presence.lookAtClock();
    const forgotten = await store.forgetEnded(clock.now(), limit);
    const due = await store.due(clock.now(), limit);
    const looked = await Promise.all(
      due.map(async (job) => ({
        job,
        lives: job.status === 'IN_PROGRESS' ? await this.#workerLives(job) : true,
      })),
    );
    const lost = new Map(
      looked.filter(({ lives }) => !lives).map(({ job }) => [`${job.endpointId} ${job.workerId}`, job]),
    );
    for (const { endpointId, workerId } of lost.values()) await this.#spare(endpointId, workerId ?? '');
    await Promise.all(
      looked.map(({ job, lives }) =>
        changes.one(job.endpointId, job.seq, (current, now) => transitions.whenDue(current, now, lives)),
      ),
    );
    return due.length >= limit || forgotten >= limit;
  }

  /** Gives up jobs that their worker evidently no longer has. */
  async sweepLost(): Promise<void> {
    const { presence, changes, store } = this.#parts;
    await Promise.all(
      presence.lostJobs().map(async ({ endpointId, workerId, seq, lease, shown }) => {
        const holder = { workerId, lease };
        await changes.one(endpointId, seq, (job, now) =>
          shown
            ? transitions.abandon(job, holder, 'the worker ended the job without a result', now)
            : transitions.lose(
                job,
                holder,
                'the worker has neither the job nor a result of it: it did not get there, or the result could not be sent',
                now,
              ),
        );
        presence.released(endpointId, workerId, seq);
      }),
    );
    try {
      await presence.note(store);
    } finally {
      // Where the others cannot be told, everything else has its turn all the same.
      await this.#compareHoldings();
      await this.#tidy();
    }
  }

  /** This server itself was away for a while. */
  awake(): void {
    this.#parts.presence.awake();
  }

  /** A worker is gone for certain: what it holds goes back now. */
  async workerGone(endpointId: string, workerId: string, reason: string): Promise<void> {
    const { store, changes } = this.#parts;
    await this.#spare(endpointId, workerId);
    const held = (await store.running(endpointId)).filter((job) => job.workerId === workerId);
    await Promise.all(
      held.map(({ seq, lease }) =>
        changes.one(endpointId, seq, (job, now) =>
          transitions.lose(job, { workerId, lease: lease ?? undefined }, reason, now),
        ),
      ),
    );
  }

  /** A worker left this server and did not come back since: what it holds goes back, unless another server has heard of it, or its instance runs. */
  async workerLeft(endpointId: string, workerId: string, since: number, reason: string): Promise<void> {
    if (this.#closed || !this.#parts.presence.goneSince(endpointId, workerId, since)) return;
    if (
      (await this.#isHeardOfElsewhere(endpointId, workerId, since + 1)) ||
      (await this.#instanceRuns(endpointId, workerId))
    )
      return;
    await this.workerGone(endpointId, workerId, reason);
  }

  /** No server has heard of a worker for so long that it is taken for dead, and it holds no job: one that runs a job may only be too busy to speak. */
  async isSilent(endpointId: string, workerId: string): Promise<boolean> {
    if (await this.#isHeardOf(endpointId, workerId)) return false;
    return !(await this.#parts.store.running(endpointId)).some((job) => job.workerId === workerId);
  }

  /** The server stops: workers leave it that go on elsewhere. */
  close(): void {
    this.#closed = true;
  }

  /** What a lost worker cannot have begun goes back as if it had never been taken: whatever ended the worker, those jobs did not, and it costs them no retry. */
  async #spare(endpointId: string, workerId: string): Promise<void> {
    const { presence, changes } = this.#parts;
    const notBegun = presence
      .notBegun(endpointId, workerId)
      .filter(({ seq }) => (this.#spared.get(endpointId, seq) ?? 0) < MOST_SPARED);
    if (this.#spared.size + notBegun.length > MOST_REMEMBERED) this.#spared.clear();
    for (const { seq } of notBegun)
      this.#spared.set(endpointId, seq, (this.#spared.get(endpointId, seq) ?? 0) + 1);
    await Promise.all(
      notBegun.map(({ seq, lease }) =>
        changes.one(endpointId, seq, (job, now) => transitions.giveBack(job, { workerId, lease }, now)),
      ),
    );
  }

  /**
   * Now and then, what workers hold according to the store is compared with what is known of
   * them here. A job can come to a worker by another server, or by a take whose answer was
   * lost: unless it is known here, nobody would notice that the worker does not have it.
   */
  async #compareHoldings(): Promise<void> {
    const { store, clock, presence } = this.#parts;
    const asOf = clock.now();
    if (isRecent(this.#comparedAt, transitions.LEASE_MS, asOf)) return;
    this.#comparedAt = asOf;
    const running = await store.running();
    presence.compare(running, asOf);
    await this.#bringNear(running.filter((job) => isFarAhead(job, asOf)));
  }

  /** Leases that were written before the clock was set back are looked at as soon as any other. */
  async #bringNear(ahead: readonly Job[]): Promise<void> {
    const { changes } = this.#parts;
    await Promise.all(
      ahead.map(({ endpointId, seq, workerId, lease }) =>
        changes.one(endpointId, seq, (job, now) =>
          isFarAhead(job, now)
            ? transitions.renew(job, { workerId: workerId ?? '', lease: lease ?? undefined }, now)
            : undefined,
        ),
      ),
    );
  }

  /** Now and then, what nobody needs any more is cleared away. */
  async #tidy(): Promise<void> {
    const { store, clock } = this.#parts;
    const now = clock.now();
    if (isRecent(this.#tidiedAt, TIDY_EVERY_MS, now)) return;
    this.#tidiedAt = now;
    await store.tidy(now - FORGET_WORKERS_MS);
  }

  async #workerLives({ endpointId, workerId }: Job): Promise<boolean> {
    return (
      (await this.#isHeardOf(endpointId, workerId ?? '')) || this.#instanceRuns(endpointId, workerId ?? '')
    );
  }

  /** By this server, or by another one. */
  async #isHeardOf(endpointId: string, workerId: string): Promise<boolean> {
    const { clock, presence } = this.#parts;
    return (
      presence.lives(endpointId, workerId) === true ||
      this.#isHeardOfElsewhere(endpointId, workerId, clock.now() - SILENT_MS)
    );
  }

  async #isHeardOfElsewhere(endpointId: string, workerId: string, since: number): Promise<boolean> {
    const { store, clock } = this.#parts;
    const seen = await store.workers(endpointId, since);
    return seen.some((worker) => worker.workerId === workerId && !isAhead(worker.seenAt, clock.now()));
  }

  /** Silence alone proves nothing: a handler that never yields keeps everything else waiting. Where its instance runs, the worker is not lost. */
  async #instanceRuns(endpointId: string, workerId: string): Promise<boolean> {
    return (await this.#parts.instanceRuns?.(endpointId, workerId)) ?? false;
  }
}

/** No lease is to be looked at that late, by any clock that goes right. */
function isFarAhead({ dueAt }: Job, now: number): boolean {
  return isAhead(dueAt, now + transitions.LEASE_MS);
}
