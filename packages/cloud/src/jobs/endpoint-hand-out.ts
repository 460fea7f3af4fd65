import type { Job } from '../store/job-records.ts';
import type { Claim, JobStore, TakenJob } from '../store/jobs.ts';
import type { Clock } from '../support/clock.ts';
import type { Log } from '../support/log.ts';
import { callAfter } from '../support/shared-timer.ts';
import type { Departure } from './departure.ts';
import { leaseToken } from './identity.ts';
import { persist } from './persist.ts';
import { Takers } from './takers.ts';
import type { Taker } from './takers.ts';
import * as transitions from './transitions.ts';

/** One commit carries no more than this many hand-outs of an endpoint. */
const LARGEST_TAKE = 500;
/**
 * Workers may ask for far more than there is, and every claim costs something. So a first take asks
 * for a few, and as long as takes bring all that they asked for, the next one asks for more.
 */
const FIRST_TAKE = 4;
const GROWTH = 8;
/** Where nothing waits, whoever comes to wait is looked after this much later: of a thousand that come at once, each would look. Whatever comes in wakes them at once. */
const EMPTY_MS = 500;
/** Jobs that were in somebody's hands are looked for again this much later. */
const PASSED_OVER_MS = 20;
/** Before jobs are handed out again after the store refused. */
const TAKE_AGAIN_MS = 250;

export interface HandOutParts {
  store: Pick<JobStore, 'take' | 'running'>;
  clock: Clock;
  log: Log;
  /** A job left the queue. */
  onTaken(job: Job): void;
  /** A worker has them now. */
  onGiven(endpointId: string, workerId: string, jobs: readonly Job[]): void;
  /** Jobs that were taken and reached nobody go back. */
  giveBack(endpointId: string, taken: readonly TakenJob[]): Promise<void>;
}

/** A round in which takers are served. */
interface Round {
  /** Something happened meanwhile: another one follows. */
  again: boolean;
  /** And that was that something may have come in. */
  news: boolean;
}

/** What a take found out about the queue. It is forgotten after a while, and looked at again if somebody asked for it. */
interface Emptiness {
  isEmpty: boolean;
  asked: boolean;
}

/** Brings the waiting jobs of one endpoint to its waiting workers: one take from the store serves all of them. */
export class EndpointHandOut {
  readonly #parts: HandOutParts;
  readonly #endpointId: string;
  readonly #takers = new Takers<TakenJob>();
  #round: Round | undefined;
  /** How much the next take asks for. */
  #size = FIRST_TAKE;
  /** Set where a take left nothing lately. */
  #left: Emptiness | undefined;

  constructor(parts: HandOutParts, endpointId: string) {
    this.#parts = parts;
    this.#endpointId = endpointId;
  }

  /** Waits for up to `room` jobs. Answers none when the time is over, the worker gives up, or it is released. */
  wait(workerId: string, room: number, milliseconds: number, signal: Departure): Promise<TakenJob[]> {
    return new Promise((resolve) => {
      const end = (): void => {
        this.#takers.remove(taker);
        taker.hand([]);
      };
      const notLater = callAfter(milliseconds, end);
      const taker: Taker<TakenJob> = {
        workerId,
        room,
        hand: (given) => {
          notLater();
          signal.removeEventListener('abort', end);
          resolve(given);
        },
      };
      signal.addEventListener('abort', end, { once: true });
      if (signal.aborted) return end();
      this.#takers.add(taker);
      if (this.#left?.isEmpty === true) this.#left.asked = true;
      else this.#serveAll();
    });
  }

  /** There may be something. */
  wake(): void {
    this.#mayHold();
    if (this.#round !== undefined) this.#round.news = true;
    this.#serveAll();
  }

  /** Ends the wait of those that the test picks, with nothing. */
  release(picked: (workerId: string) => boolean): void {
    this.#takers.release((taker) => picked(taker.workerId));
  }

  /** Serves those who wait, one round at a time. What comes in meanwhile makes another round. */
  #serveAll(): void {
    if (this.#round !== undefined) {
      this.#round.again = true;
      return;
    }
    if (this.#takers.size === 0) return;
    const round: Round = { again: false, news: false };
    this.#round = round;
    void this.#serve(round).then((mayHaveMore) => {
      this.#round = undefined;
      if (round.again || mayHaveMore) this.#serveAll();
    });
  }

  /** One take. Answers whether another one may find something. */
  async #serve(round: Round): Promise<boolean> {
    const { store, clock, log, onTaken, onGiven, giveBack } = this.#parts;
    const endpointId = this.#endpointId;
    const owners = new Map<string, Taker<TakenJob>>();
    const claims = (): Claim[] =>
      this.#takers.turns(this.#size).map((taker) => {
        const lease = leaseToken();
        owners.set(lease, taker);
        return { workerId: taker.workerId, lease };
      });
    let taken: TakenJob[];
    let passedOver = false;
    try {
      taken = await store.take(endpointId, {
        ...transitions.takeTerms(claims, clock.now()),
        onPassedOver: () => (passedOver = true),
      });
    } catch (error) {
      log.warn({ err: error, endpointId }, 'jobs could not be handed out; trying again');
      await this.#putBack(this.#undoTake(owners));
      await new Promise((resolve) => setTimeout(resolve, TAKE_AGAIN_MS));
      return true;
    }
    const isFull = taken.length > 0 && taken.length === owners.size;
    if (isFull) this.#mayHold();
    else if (passedOver) setTimeout(() => this.wake(), PASSED_OVER_MS).unref();
    else if (owners.size > 0 && !round.news) this.#tookAll();
    this.#size = Math.min(LARGEST_TAKE, Math.max(FIRST_TAKE, taken.length * (isFull ? GROWTH : 2)));
    const given = new Map<Taker<TakenJob>, TakenJob[]>();
    const stray: TakenJob[] = [];
    for (const job of taken) {
      // Its time to live was over before any sweep came. It reaches nobody: its lease is due, and the next sweep ends it.
      if (transitions.hasOutlived(job.job, job.job.takenAt ?? 0)) continue;
      const owner = owners.get(job.job.lease ?? '');
      // Whoever left while its jobs were on their way gets none of them.
      if (owner === undefined || !this.#takers.has(owner)) stray.push(job);
      else if (!given.get(owner)?.push(job)) given.set(owner, [job]);
      onTaken(job.job);
    }
    for (const [taker, jobs] of given) {
      this.#takers.remove(taker);
      onGiven(
        endpointId,
        taker.workerId,
        jobs.map(({ job }) => job),
      );
      taker.hand(jobs);
    }
    if (stray.length > 0) await this.#putBack(giveBack(endpointId, stray));
    return isFull;
  }

  #tookAll(): void {
    if (this.#left !== undefined) {
      this.#left.isEmpty = true;
      return;
    }
    const left: Emptiness = { isEmpty: true, asked: false };
    this.#left = left;
    setTimeout(() => {
      this.#left = undefined;
      if (left.isEmpty && left.asked) this.#serveAll();
    }, EMPTY_MS).unref();
  }

  #mayHold(): void {
    if (this.#left !== undefined) this.#left.isEmpty = false;
  }

  /** Jobs that cannot be put back now are found when their lease runs out. */
  async #putBack(work: Promise<void>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#parts.log.warn({ err: error }, 'jobs that reached no worker could not be put back yet');
    }
  }

  /** A take that failed may have taken effect all the same: whatever carries its leases goes back. */
  async #undoTake(leases: ReadonlyMap<string, unknown>): Promise<void> {
    const { store, giveBack } = this.#parts;
    if (leases.size === 0) return;
    const stray = (await persist(() => store.running(this.#endpointId))).filter(
      ({ lease }) => lease !== null && leases.has(lease),
    );
    await giveBack(
      this.#endpointId,
      stray.map((job) => ({ job, request: '' })),
    );
  }
}
