import type { Job } from '../store/job-records.ts';
import type { Claim, JobStore, TakenJob } from '../store/jobs.ts';
import type { Clock } from '../support/clock.ts';
import type { Log } from '../support/log.ts';
import { callAfter } from '../support/shared-timer.ts';
import { SteadyMap } from '../support/steady-map.ts';
import type { Departure } from './departure.ts';
import { leaseToken } from './identity.ts';
import { PATIENCE, persist } from './persist.ts';
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
  /** A worker has it now. */
  onGiven(endpointId: string, workerId: string, job: Job): void;
  /** Jobs that were taken and reached nobody go back. */
  giveBack(endpointId: string, taken: readonly TakenJob[]): Promise<void>;
}

/** What a take found out about a queue. It is forgotten after a while, and looked at again if somebody asked for it. */
interface Emptiness {
  isEmpty: boolean;
  asked: boolean;
}

/** Brings waiting jobs to waiting workers: one take from the store serves all workers of an endpoint that wait. */
export class HandOut {
  readonly #parts: HandOutParts;
  readonly #takers = new SteadyMap<string, Takers<TakenJob>>();
  /** Endpoints whose takers are being served, whether they have to be served again, and whether that is because something came in. */
  readonly #serving = new SteadyMap<string, { again: boolean; news: boolean }>();
  /** How much the next take of an endpoint asks for, where that is more than the first one does. */
  readonly #sizes = new Map<string, number>();
  /** Endpoints where a take left nothing lately. */
  readonly #left = new Map<string, Emptiness>();
  #closed = false;

  constructor(parts: HandOutParts) {
    this.#parts = parts;
  }

  /** Waits for up to `room` jobs. Answers none when the time is over, the worker gives up, or it is released. */
  wait(endpointId: string, workerId: string, room: number, milliseconds: number, signal: Departure): Promise<TakenJob[]> {
    return new Promise((resolve) => {
      const takers = this.#takersOf(endpointId);
      const end = (): void => {
        takers.remove(taker);
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
      if (this.#closed || signal.aborted) return end();
      takers.add(taker);
      const left = this.#left.get(endpointId);
      if (left?.isEmpty === true) left.asked = true;
      else this.#serveAll(endpointId);
    });
  }

  /** There may be something on this endpoint. */
  wake(endpointId: string): void {
    this.#mayHold(endpointId);
    const serving = this.#serving.get(endpointId);
    if (serving !== undefined) serving.news = true;
    this.#serveAll(endpointId);
  }

  /** Serves those who wait on an endpoint, one round at a time. What comes in meanwhile makes another round. */
  #serveAll(endpointId: string): void {
    const serving = this.#serving.get(endpointId);
    if (serving !== undefined) {
      serving.again = true;
      return;
    }
    const takers = this.#takers.get(endpointId);
    if (takers === undefined || takers.size === 0) return;
    const round = { again: false, news: false };
    this.#serving.set(endpointId, round);
    void this.#serve(endpointId, takers).then((mayHaveMore) => {
      this.#serving.delete(endpointId);
      if (takers.size === 0) this.#takers.delete(endpointId);
      if (round.again || mayHaveMore) this.#serveAll(endpointId);
    });
  }

  wakeAll(): void {
    for (const endpointId of this.#takers.keys()) this.wake(endpointId);
  }

  /** Ends the wait of one worker, with nothing. */
  release(endpointId: string, workerId: string): void {
    this.#takers.get(endpointId)?.release((taker) => taker.workerId === workerId);
  }

  /** Lets everyone go who waits. */
  close(): void {
    this.#closed = true;
    for (const takers of this.#takers.values()) takers.release(() => true);
  }

  #takersOf(endpointId: string): Takers<TakenJob> {
    let takers = this.#takers.get(endpointId);
    if (takers === undefined) {
      takers = new Takers();
      this.#takers.set(endpointId, takers);
    }
    return takers;
  }

  /** One take. Answers whether another one may find something. */
  async #serve(endpointId: string, takers: Takers<TakenJob>): Promise<boolean> {
    const { store, clock, log, onTaken, onGiven, giveBack } = this.#parts;
    const owners = new Map<string, Taker<TakenJob>>();
    const claims = (): Claim[] =>
      takers.turns(this.#sizes.get(endpointId) ?? FIRST_TAKE).map((taker) => {
        const lease = leaseToken();
        owners.set(lease, taker);
        return { workerId: taker.workerId, lease };
      });
    let taken: TakenJob[];
    let passedOver = false;
    try {
      taken = await store.take(endpointId, { ...transitions.takeTerms(claims, clock.now()), onPassedOver: () => (passedOver = true) });
    } catch (error) {
      log.warn({ err: error, endpointId }, 'jobs could not be handed out; trying again');
      await this.#putBack(this.#undoTake(endpointId, owners));
      await new Promise((resolve) => setTimeout(resolve, TAKE_AGAIN_MS));
      return true;
    }
    const isFull = taken.length > 0 && taken.length === owners.size;
    if (isFull) this.#mayHold(endpointId);
    else if (passedOver) setTimeout(() => this.wake(endpointId), PASSED_OVER_MS).unref();
    else if (owners.size > 0 && this.#serving.get(endpointId)?.news !== true) this.#tookAll(endpointId);
    this.#sizeNext(endpointId, isFull ? taken.length * GROWTH : taken.length * 2);
    const given = new Map<Taker<TakenJob>, TakenJob[]>();
    const stray: TakenJob[] = [];
    for (const job of taken) {
      const owner = owners.get(job.job.lease ?? '');
      // Whoever left while its jobs were on their way gets none of them.
      if (owner === undefined || !takers.has(owner)) stray.push(job);
      else if (!given.get(owner)?.push(job)) given.set(owner, [job]);
      onTaken(job.job);
    }
    for (const [taker, jobs] of given) {
      takers.remove(taker);
      for (const { job } of jobs) onGiven(endpointId, taker.workerId, job);
      taker.hand(jobs);
    }
    if (stray.length > 0) await this.#putBack(giveBack(endpointId, stray));
    return isFull;
  }

  #tookAll(endpointId: string): void {
    const known = this.#left.get(endpointId);
    if (known !== undefined) {
      known.isEmpty = true;
      return;
    }
    const left: Emptiness = { isEmpty: true, asked: false };
    this.#left.set(endpointId, left);
    setTimeout(() => {
      this.#left.delete(endpointId);
      if (left.isEmpty && left.asked) this.#serveAll(endpointId);
    }, EMPTY_MS).unref();
  }

  #mayHold(endpointId: string): void {
    const left = this.#left.get(endpointId);
    if (left !== undefined) left.isEmpty = false;
  }

  #sizeNext(endpointId: string, size: number): void {
    if (size <= FIRST_TAKE) this.#sizes.delete(endpointId);
    else this.#sizes.set(endpointId, Math.min(LARGEST_TAKE, size));
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
  async #undoTake(endpointId: string, leases: ReadonlyMap<string, unknown>): Promise<void> {
    const { store, clock, giveBack } = this.#parts;
    if (leases.size === 0) return;
    const stray = (await persist(() => store.running(endpointId), clock, PATIENCE.worker)).filter(({ lease }) => lease !== null && leases.has(lease));
    await giveBack(endpointId, stray.map((job) => ({ job, request: '' })));
  }
}
