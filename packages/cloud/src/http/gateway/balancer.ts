import type { FastifyBaseLogger } from 'fastify';
import type { Endpoint } from '../../store/records.ts';
import { notFound } from '../../support/errors.ts';
import { isStrict } from './affinity.ts';
import type { Affinity } from './affinity.ts';
import type { GatewayLimits } from './limits.ts';
import type { BalancedWorker, WorkerPool } from './pool.ts';
import type { Refusal } from './refusals.ts';
import { noWorkers, workerGone, workerTimeout } from './refusals.ts';

/** Whoever waits looks again this often, whatever is told. */
const LOOK_AGAIN_MS = 10_000;

/** What of an endpoint decides over its requests. */
export type BalancedEndpoint = Pick<Endpoint, 'id' | 'scalerType' | 'scalerValue'>;

export interface BalancerParts {
  pool: WorkerPool;
  /** Endpoints as they are now. */
  endpoints: { find(id: string): Promise<BalancedEndpoint | undefined> };
  limits: GatewayLimits;
  log: FastifyBaseLogger;
}

/** A request on its way to a worker. */
export interface Visit {
  /** As it was when the request came. */
  endpoint: BalancedEndpoint;
  affinity: Affinity | undefined;
  /** Its turn: whoever came before has a smaller one. */
  number: number;
  /** How long it waits for a worker in all, in the time of `performance.now()`. */
  until: number;
}

/** One request's hold on a worker. */
export interface Place {
  worker: BalancedWorker;
  /** The request is over. Said twice, it counts once. */
  leave(): void;
}

interface Waiting {
  visit: Visit;
  admit(place: Place): void;
  refuse(refusal: Error): void;
}

/** The requests of one endpoint. */
interface Lane {
  endpointId: string;
  /** How many requests one worker has at the same time, as was last heard. */
  target: number;
  /** In flight, by worker. */
  loads: Map<string, number>;
  inFlight: number;
  /** In the order in which they came. */
  waiting: Set<Waiting>;
  /** The greatest number that has waited here. */
  newest: number;
  /** Set while someone watches the pool for those who wait. */
  watching: AbortController | undefined;
  /** Workers that refused a connection, while they are left alone. */
  shunned: Set<string>;
}

/**
 * Gives every request a worker: the least loaded of those that are ready and have room. How
 * many requests a worker has room for is the endpoint's own scaler value. Where none has
 * room, requests wait in the order in which they came, so many and so long and no more.
 */
export class Balancer {
  readonly #pool: WorkerPool;
  readonly #endpoints: BalancerParts['endpoints'];
  readonly #limits: GatewayLimits;
  readonly #log: FastifyBaseLogger;
  readonly #lanes = new Map<string, Lane>();
  /** Where the next look for a worker begins: of several with the same load, not always the first. */
  #turn = 0;
  #arrivals = 0;
  #closed = false;

  constructor({ pool, endpoints, limits, log }: BalancerParts) {
    this.#pool = pool;
    this.#endpoints = endpoints;
    this.#limits = limits;
    this.#log = log;
  }

  /** A request has come: its turn and its time begin. */
  arrive(endpoint: BalancedEndpoint, affinity: Affinity | undefined): Visit {
    this.#arrivals += 1;
    this.#heed(this.#lane(endpoint), endpoint);
    const { waitMs, strictWaitMs } = this.#limits;
    return {
      endpoint,
      affinity,
      number: this.#arrivals,
      until: performance.now() + (isStrict(affinity) ? strictWaitMs : waitMs),
    };
  }

  /** A place at once, where there is one and nobody waits for it. */
  find({ endpoint, affinity }: Visit): Place | undefined {
    const lane = this.#lane(endpoint);
    if (lane.waiting.size > 0 || this.#closed) return undefined;
    const worker = this.#choose(lane, affinity);
    return worker === undefined ? undefined : this.#seat(lane, worker, true);
  }

  /** Waits for a place. Throws a refusal where the room is full, the time is over or the worker asked for is gone. */
  async wait(visit: Visit, signal: AbortSignal): Promise<Place> {
    await this.#settleWorker(visit);
    const lane = this.#lane(visit.endpoint);
    if (lane.waiting.size >= this.#limits.waiting) throw noWorkers();
    return this.#waitIn(lane, visit, signal);
  }

  /**
   * A place at another worker, for a request that its own could not be given. Where there is
   * none it waits on, in its turn and for what is left of its time, however full the room is.
   */
  async instead(visit: Visit, place: Place, signal: AbortSignal): Promise<Place> {
    const lane = this.#lane(visit.endpoint);
    this.#shun(lane, place.worker.id);
    const other = this.#choose(lane, visit.affinity);
    const taken = other === undefined ? undefined : this.#seat(lane, other, true);
    place.leave();
    if (taken !== undefined) return taken;
    await this.#settleWorker(visit);
    return this.#waitIn(this.#lane(visit.endpoint), visit, signal);
  }

  /** An endpoint has changed or gone: that counts for those who wait too. Without an id, any may have. */
  lookAgain(endpointId?: string): void {
    for (const lane of this.#lanes.values())
      if (lane.waiting.size > 0 && (endpointId ?? lane.endpointId) === lane.endpointId)
        void this.#lookUp(lane);
  }

  /** How many requests each worker of an endpoint has in flight. */
  loads(endpointId: string): ReadonlyMap<string, number> {
    return this.#lanes.get(endpointId)?.loads ?? new Map();
  }

  /** Requests in flight and waiting. */
  demand(endpointId: string): number {
    const lane = this.#lanes.get(endpointId);
    return lane === undefined ? 0 : lane.inFlight + lane.waiting.size;
  }

  /** Nobody is let in any more. */
  close(): void {
    this.#closed = true;
    for (const lane of this.#lanes.values())
      for (const waiting of [...lane.waiting]) waiting.refuse(noWorkers());
  }

  #waitIn(lane: Lane, visit: Visit, signal: AbortSignal): Promise<Place> {
    const left = visit.until - performance.now();
    if (this.#closed || signal.aborted || left <= 0) {
      this.#forgetIdle(lane);
      throw left <= 0 ? overdue(visit) : noWorkers();
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abandoned);
        lane.waiting.delete(waiting);
        if (lane.waiting.size > 0) return;
        lane.watching?.abort();
        lane.watching = undefined;
      };
      const waiting: Waiting = {
        visit,
        admit: (place) => {
          leave();
          resolve(place);
        },
        refuse: (refusal) => {
          leave();
          this.#tell(lane);
          this.#forgetIdle(lane);
          reject(refusal);
        },
      };
      const timer = setTimeout(() => waiting.refuse(overdue(visit)), left);
      const abandoned = (): void => waiting.refuse(noWorkers());
      signal.addEventListener('abort', abandoned, { once: true });
      lineUp(lane, waiting);
      this.#tell(lane);
      if (lane.watching === undefined) void this.#watch(lane);
      else this.#admitWaiting(lane);
    });
  }

  /** The worker that a request insists on has to be there, or to come back. */
  async #settleWorker({ endpoint, affinity }: Visit): Promise<void> {
    if (!isStrict(affinity) || this.#isThere(endpoint.id, affinity.workerId)) return;
    const resumed =
      affinity.kind === 'strict-resume' &&
      ((await this.#pool.resume?.(endpoint.id, affinity.workerId)) ?? false);
    if (!resumed) throw workerGone(affinity.workerId);
  }

  #isThere(endpointId: string, workerId: string): boolean {
    return (
      this.#pool.ready(endpointId).some(({ id }) => id === workerId) ||
      (this.#pool.exists?.(endpointId, workerId) ?? false)
    );
  }

  #choose(lane: Lane, affinity: Affinity | undefined): BalancedWorker | undefined {
    const { target } = lane;
    const ready = this.#pool.ready(lane.endpointId);
    if (affinity !== undefined) {
      const wanted = ready.find(({ id }) => id === affinity.workerId);
      if (wanted !== undefined && !lane.shunned.has(wanted.id) && (lane.loads.get(wanted.id) ?? 0) < target)
        return wanted;
      if (isStrict(affinity)) return undefined;
    }
    const count = ready.length;
    if (count > 1) this.#turn = (this.#turn + 1) % 0x40000000;
    let best: BalancedWorker | undefined;
    let least = target;
    for (let step = 0; step < count && least > 0; step += 1) {
      const worker = ready[(this.#turn + step) % count] as BalancedWorker;
      const load = lane.loads.get(worker.id) ?? 0;
      if (load >= least || lane.shunned.has(worker.id)) continue;
      best = worker;
      least = load;
    }
    return best;
  }

  /** Leaves a worker alone for a while, even where it is the only one: it may have ended, and that is known a moment later. */
  #shun(lane: Lane, workerId: string): void {
    if (lane.shunned.has(workerId)) return;
    this.#log.info(
      { endpointId: lane.endpointId, workerId },
      'a worker that is said to be ready cannot be reached',
    );
    lane.shunned.add(workerId);
    const over = (): void => {
      lane.shunned.delete(workerId);
      this.#admitWaiting(lane);
      this.#forgetIdle(lane);
    };
    setTimeout(over, this.#limits.shunMs).unref();
  }

  #seat(lane: Lane, worker: BalancedWorker, isNew: boolean): Place {
    const { endpointId } = lane;
    lane.loads.set(worker.id, (lane.loads.get(worker.id) ?? 0) + 1);
    lane.inFlight += 1;
    this.#pool.touched(endpointId, worker.id);
    if (isNew) this.#tell(lane);
    let left = false;
    const leave = (): void => {
      if (left) return;
      left = true;
      lane.inFlight -= 1;
      const load = (lane.loads.get(worker.id) ?? 1) - 1;
      if (load === 0) lane.loads.delete(worker.id);
      else lane.loads.set(worker.id, load);
      this.#pool.touched(endpointId, worker.id);
      this.#tell(lane);
      if (lane.waiting.size > 0) this.#admitWaiting(lane);
      else this.#forgetIdle(lane);
    };
    return { worker, leave };
  }

  #admitWaiting(lane: Lane): void {
    let full = false;
    for (const waiting of lane.waiting) {
      const { affinity } = waiting.visit;
      if (full && !isStrict(affinity)) continue;
      const worker = this.#choose(lane, affinity);
      if (worker !== undefined) waiting.admit(this.#seat(lane, worker, false));
      else if (!isStrict(affinity)) full = true;
      else if (!this.#isThere(lane.endpointId, affinity.workerId))
        waiting.refuse(workerGone(affinity.workerId));
    }
  }

  /** Takes over what an endpoint says. */
  #heed(lane: Lane, endpoint: BalancedEndpoint): void {
    const before = lane.target;
    lane.target = targetOf(endpoint);
    if (lane.target > before && lane.waiting.size > 0) this.#admitWaiting(lane);
  }

  /** Where the endpoint cannot be looked up, what was known of it goes on counting. */
  async #lookUp(lane: Lane): Promise<void> {
    const { endpointId } = lane;
    try {
      const endpoint = await this.#endpoints.find(endpointId);
      if (endpoint !== undefined) this.#heed(lane, endpoint);
      else for (const waiting of [...lane.waiting]) waiting.refuse(notFound('endpoint', endpointId));
    } catch (error) {
      this.#log.warn({ err: error, endpointId }, 'an endpoint for which requests wait cannot be looked up');
    }
  }

  /** Looks whenever the pool has changed, as long as someone waits. */
  async #watch(lane: Lane): Promise<void> {
    const watching = new AbortController();
    lane.watching = watching;
    try {
      while (lane.watching === watching) {
        // Listening begins before the look: what changes in between is not missed.
        const changed = this.#pool.waitForChange(lane.endpointId, LOOK_AGAIN_MS, watching.signal);
        this.#admitWaiting(lane);
        await this.#lookUp(lane);
        await changed;
      }
    } catch (error) {
      this.#log.error(
        { err: error, endpointId: lane.endpointId },
        'the workers of an endpoint cannot be watched; those who wait for one are sent away',
      );
      for (const waiting of [...lane.waiting]) waiting.refuse(noWorkers());
    }
  }

  #lane(endpoint: BalancedEndpoint): Lane {
    const endpointId = endpoint.id;
    let lane = this.#lanes.get(endpointId);
    if (lane === undefined) {
      lane = {
        endpointId,
        target: targetOf(endpoint),
        loads: new Map(),
        inFlight: 0,
        waiting: new Set(),
        newest: 0,
        watching: undefined,
        shunned: new Set(),
      };
      this.#lanes.set(endpointId, lane);
    }
    return lane;
  }

  #forgetIdle(lane: Lane): void {
    if (lane.inFlight === 0 && lane.waiting.size === 0 && lane.shunned.size === 0)
      this.#lanes.delete(lane.endpointId);
  }

  #tell(lane: Lane): void {
    this.#pool.demand(lane.endpointId, lane.inFlight + lane.waiting.size);
  }
}

/** Its time to wait is over. */
function overdue({ affinity }: Visit): Refusal {
  return isStrict(affinity) ? workerTimeout(affinity.workerId) : noWorkers();
}

/** Those who come stand behind the others; one that comes back stands where it stood. */
function lineUp(lane: Lane, waiting: Waiting): void {
  lane.waiting.add(waiting);
  const { number } = waiting.visit;
  if (number > lane.newest) lane.newest = number;
  else lane.waiting = new Set([...lane.waiting].sort((one, other) => one.visit.number - other.visit.number));
}

/** How many requests one worker has at the same time. */
function targetOf({ scalerType, scalerValue }: BalancedEndpoint): number {
  return scalerType === 'REQUEST_COUNT' ? Math.max(1, Math.floor(scalerValue)) : 1;
}
