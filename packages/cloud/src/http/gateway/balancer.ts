import type { FastifyBaseLogger } from 'fastify';
import type { Endpoint } from '../../store/records.ts';
import { isStrict } from './affinity.ts';
import type { Affinity } from './affinity.ts';
import type { GatewayLimits } from './limits.ts';
import { SHUN_MS } from './limits.ts';
import type { BalancedWorker, WorkerPool } from './pool.ts';
import type { Refusal } from './refusals.ts';
import { noWorkers, workerGone, workerTimeout } from './refusals.ts';

/** Whoever waits looks again this often, whatever the pool says. */
const LOOK_AGAIN_MS = 10_000;

/** What of an endpoint decides over its requests. */
export type BalancedEndpoint = Pick<Endpoint, 'id' | 'scalerType' | 'scalerValue'>;

/** One request's hold on a worker. */
export interface Place {
  worker: BalancedWorker;
  /** The request is over. Said twice, it counts once. */
  leave(): void;
}

interface Waiting {
  target: number;
  affinity: Affinity | undefined;
  admit(place: Place): void;
  refuse(refusal: Refusal): void;
}

/** The requests of one endpoint. */
interface Lane {
  endpointId: string;
  /** In flight, by worker. */
  loads: Map<string, number>;
  inFlight: number;
  /** In the order in which they came. */
  waiting: Set<Waiting>;
  /** Set while someone watches the pool for those who wait. */
  watching: AbortController | undefined;
  /** Workers that refused a connection, and until when they are left alone. */
  shunned: Map<string, number>;
}

/**
 * Gives every request a worker: the least loaded of those that are ready and have room. How
 * many requests a worker has room for is the endpoint's own scaler value. Where none has
 * room, requests wait in the order in which they came, so many and so long and no more.
 */
export class Balancer {
  readonly #pool: WorkerPool;
  readonly #limits: GatewayLimits;
  readonly #log: FastifyBaseLogger;
  readonly #lanes = new Map<string, Lane>();
  /** Where the next look for a worker begins: of several with the same load, not always the first. */
  #turn = 0;
  #closed = false;

  constructor(pool: WorkerPool, limits: GatewayLimits, log: FastifyBaseLogger) {
    this.#pool = pool;
    this.#limits = limits;
    this.#log = log;
  }

  /** A place at once, where there is one and nobody waits for it. */
  find(endpoint: BalancedEndpoint, affinity: Affinity | undefined): Place | undefined {
    const lane = this.#lane(endpoint.id);
    if (lane.waiting.size > 0 || this.#closed) return undefined;
    const worker = this.#choose(lane, targetOf(endpoint), affinity);
    return worker === undefined ? undefined : this.#seat(lane, worker, true);
  }

  /** A place at another worker, for a request that its own did not take. */
  another(endpoint: BalancedEndpoint, without: string): Place | undefined {
    const lane = this.#lane(endpoint.id);
    lane.shunned.set(without, Date.now() + SHUN_MS);
    const worker = this.#choose(lane, targetOf(endpoint), undefined, without);
    return worker === undefined ? undefined : this.#seat(lane, worker, true);
  }

  /** Waits for a place. Throws a refusal where the room is full, the time is over or the worker asked for is gone. */
  async wait(endpoint: BalancedEndpoint, affinity: Affinity | undefined, signal: AbortSignal): Promise<Place> {
    await this.#settleWorker(endpoint.id, affinity);
    const lane = this.#lane(endpoint.id);
    if (this.#closed || signal.aborted || lane.waiting.size >= this.#limits.waiting) {
      this.#forgetIdle(lane);
      throw noWorkers();
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
        target: targetOf(endpoint),
        affinity,
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
      const strict = isStrict(affinity);
      const timer = setTimeout(() => waiting.refuse(strict ? workerTimeout(affinity.workerId) : noWorkers()), strict ? this.#limits.strictWaitMs : this.#limits.waitMs);
      const abandoned = (): void => waiting.refuse(noWorkers());
      signal.addEventListener('abort', abandoned, { once: true });
      lane.waiting.add(waiting);
      this.#tell(lane);
      if (lane.watching === undefined) void this.#watch(lane);
      else this.#admitWaiting(lane);
    });
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
    for (const lane of this.#lanes.values()) for (const waiting of [...lane.waiting]) waiting.refuse(noWorkers());
  }

  /** The worker that a request insists on has to be there, or to come back. */
  async #settleWorker(endpointId: string, affinity: Affinity | undefined): Promise<void> {
    if (!isStrict(affinity) || this.#isThere(endpointId, affinity.workerId)) return;
    const resumed = affinity.kind === 'strict-resume' && ((await this.#pool.resume?.(endpointId, affinity.workerId)) ?? false);
    if (!resumed) throw workerGone(affinity.workerId);
  }

  #isThere(endpointId: string, workerId: string): boolean {
    return this.#pool.ready(endpointId).some(({ id }) => id === workerId) || (this.#pool.exists?.(endpointId, workerId) ?? false);
  }

  #choose(lane: Lane, target: number, affinity: Affinity | undefined, without?: string): BalancedWorker | undefined {
    const ready = this.#pool.ready(lane.endpointId);
    if (affinity !== undefined) {
      const wanted = ready.find(({ id }) => id === affinity.workerId);
      if (wanted !== undefined && (lane.loads.get(wanted.id) ?? 0) < target) return wanted;
      if (isStrict(affinity)) return undefined;
    }
    const shunned = lane.shunned.size === 0 ? undefined : this.#shunned(lane, ready);
    const count = ready.length;
    if (count > 1) this.#turn = (this.#turn + 1) % 0x40000000;
    let best: BalancedWorker | undefined;
    let least = target;
    for (let step = 0; step < count && least > 0; step += 1) {
      const worker = ready[(this.#turn + step) % count] as BalancedWorker;
      const load = lane.loads.get(worker.id) ?? 0;
      if (load >= least || worker.id === without || shunned?.has(worker.id) === true) continue;
      best = worker;
      least = load;
    }
    return best;
  }

  /** Those to be left alone; none where that would leave nobody. */
  #shunned(lane: Lane, ready: readonly BalancedWorker[]): ReadonlyMap<string, number> | undefined {
    const now = Date.now();
    for (const [id, until] of lane.shunned) if (until <= now || until > now + SHUN_MS) lane.shunned.delete(id);
    return ready.every(({ id }) => lane.shunned.has(id)) ? undefined : lane.shunned;
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
      const { affinity } = waiting;
      if (full && !isStrict(affinity)) continue;
      const worker = this.#choose(lane, waiting.target, affinity);
      if (worker !== undefined) waiting.admit(this.#seat(lane, worker, false));
      else if (!isStrict(affinity)) full = true;
      else if (!this.#isThere(lane.endpointId, affinity.workerId)) waiting.refuse(workerGone(affinity.workerId));
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
        await changed;
      }
    } catch (error) {
      this.#log.error({ err: error, endpointId: lane.endpointId }, 'the workers of an endpoint cannot be watched; those who wait for one are sent away');
      for (const waiting of [...lane.waiting]) waiting.refuse(noWorkers());
    }
  }

  #lane(endpointId: string): Lane {
    let lane = this.#lanes.get(endpointId);
    if (lane === undefined) {
      lane = { endpointId, loads: new Map(), inFlight: 0, waiting: new Set(), watching: undefined, shunned: new Map() };
      this.#lanes.set(endpointId, lane);
    }
    return lane;
  }

  #forgetIdle(lane: Lane): void {
    if (lane.inFlight === 0 && lane.waiting.size === 0 && lane.shunned.size === 0) this.#lanes.delete(lane.endpointId);
  }

  #tell(lane: Lane): void {
    this.#pool.demand(lane.endpointId, lane.inFlight + lane.waiting.size);
  }
}

/** How many requests one worker has at the same time. */
function targetOf({ scalerType, scalerValue }: BalancedEndpoint): number {
  return scalerType === 'REQUEST_COUNT' ? Math.max(1, Math.floor(scalerValue)) : 1;
}
