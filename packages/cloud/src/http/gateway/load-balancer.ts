import type { FastifyBaseLogger } from 'fastify';
import type { Endpoint } from '../../domain/records.ts';
import { notFound } from '../../support/errors.ts';
import { isStrictAffinity } from './worker-affinity.ts';
import type { WorkerAffinity } from './worker-affinity.ts';
import type { GatewayLimits } from './gateway-limits.ts';
import type { Upstream, WorkerPool } from '../../domain/endpoints/worker-pool.ts';
import type { GatewayError } from './gateway.errors.ts';
import { noWorkers, workerGone, workerTimeout } from './gateway.errors.ts';

/** Whoever waits looks again this often, whatever is told. */
const RECHECK_MS = 10_000;

/** What of an endpoint decides over its requests. */
export type BalancedEndpoint = Pick<Endpoint, 'id' | 'scalerType' | 'scalerValue'>;

export interface LoadBalancerDeps {
  pool: WorkerPool;
  /** Endpoints as they are now. */
  endpoints: { find(id: string): Promise<BalancedEndpoint | undefined> };
  limits: GatewayLimits;
  log: FastifyBaseLogger;
}

/** A request on its way to a worker. */
export interface PendingRequest {
  /** As it was when the request came. */
  endpoint: BalancedEndpoint;
  affinity: WorkerAffinity | undefined;
  /** Its turn: whoever came before has a smaller one. */
  sequence: number;
  /** How long it waits for a worker in all, in the time of `performance.now()`. */
  deadline: number;
}

/** One request's hold on a worker. */
export interface WorkerSlot {
  worker: Upstream;
  /** The request is over. Said twice, it counts once. */
  release(): void;
}

interface WaitingRequest {
  request: PendingRequest;
  assign(place: WorkerSlot): void;
  reject(refusal: Error): void;
}

/** The requests of one endpoint. */
interface EndpointRequests {
  endpointId: string;
  /** How many requests one worker has at the same time, as was last heard. */
  maxPerWorker: number;
  /** In flight, by worker. */
  loads: Map<string, number>;
  inFlight: number;
  /** In the order in which they came. */
  waiting: Set<WaitingRequest>;
  /** The greatest number that has waited here. */
  highestSequence: number;
  /** Set while someone watches the pool for those who wait. */
  watch: AbortController | undefined;
  /** Workers that refused a connection, while they are left alone. */
  unreachable: Set<string>;
}

/**
 * Gives every request a worker: the least loaded of those that are ready and have room. How
 * many requests a worker has room for is the endpoint's own scaler value. Where none has
 * room, requests wait in the order in which they came, so many and so long and no more.
 */
export class LoadBalancer {
  readonly #pool: WorkerPool;
  readonly #endpoints: LoadBalancerDeps['endpoints'];
  readonly #limits: GatewayLimits;
  readonly #log: FastifyBaseLogger;
  readonly #fastPath = new Map<string, EndpointRequests>();
  /** Where the next look for a worker begins: of several with the same load, not always the first. */
  #turn = 0;
  #arrivals = 0;
  #closed = false;

  constructor({ pool, endpoints, limits, log }: LoadBalancerDeps) {
    this.#pool = pool;
    this.#endpoints = endpoints;
    this.#limits = limits;
    this.#log = log;
  }

  /** A request has come: its turn and its time begin. */
  register(endpoint: BalancedEndpoint, affinity: WorkerAffinity | undefined): PendingRequest {
    this.#arrivals += 1;
    this.#heed(this.#lane(endpoint), endpoint);
    const { waitMs, strictWaitMs } = this.#limits;
    return {
      endpoint,
      affinity,
      sequence: this.#arrivals,
      deadline: performance.now() + (isStrictAffinity(affinity) ? strictWaitMs : waitMs),
    };
  }

  /** A place at once, where there is one and nobody waits for it. */
  tryAcquire({ endpoint, affinity }: PendingRequest): WorkerSlot | undefined {
    const lane = this.#lane(endpoint);
    if (lane.waiting.size > 0 || this.#closed) return undefined;
    const worker = this.#choose(lane, affinity);
    return worker === undefined ? undefined : this.#seat(lane, worker, true);
  }

  /** Waits for a place. Throws a refusal where the room is full, the time is over or the worker asked for is gone. */
  async acquire(visit: PendingRequest, signal: AbortSignal): Promise<WorkerSlot> {
    await this.#settleWorker(visit);
    const lane = this.#lane(visit.endpoint);
    if (lane.waiting.size >= this.#limits.maxWaiting) throw noWorkers();
    return this.#waitIn(lane, visit, signal);
  }

  /**
   * A place at another worker, for a request that its own could not be given. Where there is
   * none it waits on, in its turn and for what is left of its time, however full the room is.
   */
  async reacquire(visit: PendingRequest, place: WorkerSlot, signal: AbortSignal): Promise<WorkerSlot> {
    const lane = this.#lane(visit.endpoint);
    this.#shun(lane, place.worker.id);
    const other = this.#choose(lane, visit.affinity);
    const taken = other === undefined ? undefined : this.#seat(lane, other, true);
    place.release();
    if (taken !== undefined) return taken;
    await this.#settleWorker(visit);
    return this.#waitIn(this.#lane(visit.endpoint), visit, signal);
  }

  /** An endpoint has changed or gone: that counts for those who wait too. Without an id, any may have. */
  refreshEndpoint(endpointId?: string): void {
    for (const lane of this.#fastPath.values())
      if (lane.waiting.size > 0 && (endpointId ?? lane.endpointId) === lane.endpointId)
        void this.#lookUp(lane);
  }

  /** How many requests each worker of an endpoint has in flight. */
  inFlightByWorker(endpointId: string): ReadonlyMap<string, number> {
    return this.#fastPath.get(endpointId)?.loads ?? new Map();
  }

  /** Requests in flight and waiting. */
  demand(endpointId: string): number {
    const lane = this.#fastPath.get(endpointId);
    return lane === undefined ? 0 : lane.inFlight + lane.waiting.size;
  }

  /** Nobody is let in any more. */
  close(): void {
    this.#closed = true;
    for (const lane of this.#fastPath.values())
      for (const waiting of [...lane.waiting]) waiting.reject(noWorkers());
  }

  #waitIn(lane: EndpointRequests, visit: PendingRequest, signal: AbortSignal): Promise<WorkerSlot> {
    const left = visit.deadline - performance.now();
    if (this.#closed || signal.aborted || left <= 0) {
      this.#forgetIdle(lane);
      throw left <= 0 ? waitTimeoutError(visit) : noWorkers();
    }
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', abandoned);
        lane.waiting.delete(waiting);
        if (lane.waiting.size > 0) return;
        lane.watch?.abort();
        lane.watch = undefined;
      };
      const waiting: WaitingRequest = {
        request: visit,
        assign: (place) => {
          leave();
          resolve(place);
        },
        reject: (refusal) => {
          leave();
          this.#tell(lane);
          this.#forgetIdle(lane);
          reject(refusal);
        },
      };
      const timer = setTimeout(() => waiting.reject(waitTimeoutError(visit)), left);
      const abandoned = (): void => waiting.reject(noWorkers());
      signal.addEventListener('abort', abandoned, { once: true });
      enqueue(lane, waiting);
      this.#tell(lane);
      if (lane.watch === undefined) void this.#watch(lane);
      else this.#admitWaiting(lane);
    });
  }

  /** The worker that a request insists on has to be there, or to come back. */
  async #settleWorker({ endpoint, affinity }: PendingRequest): Promise<void> {
    if (!isStrictAffinity(affinity) || this.#isThere(endpoint.id, affinity.workerId)) return;
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

  #choose(lane: EndpointRequests, affinity: WorkerAffinity | undefined): Upstream | undefined {
    const { maxPerWorker } = lane;
    const ready = this.#pool.ready(lane.endpointId);
    if (affinity !== undefined) {
      const wanted = ready.find(({ id }) => id === affinity.workerId);
      if (
        wanted !== undefined &&
        !lane.unreachable.has(wanted.id) &&
        (lane.loads.get(wanted.id) ?? 0) < maxPerWorker
      )
        return wanted;
      if (isStrictAffinity(affinity)) return undefined;
    }
    const count = ready.length;
    if (count > 1) this.#turn = (this.#turn + 1) % 0x40000000;
    let best: Upstream | undefined;
    let least = maxPerWorker;
    for (let step = 0; step < count && least > 0; step += 1) {
      const worker = ready[(this.#turn + step) % count] as Upstream;
      const load = lane.loads.get(worker.id) ?? 0;
      if (load >= least || lane.unreachable.has(worker.id)) continue;
      best = worker;
      least = load;
    }
    return best;
  }

  /** Leaves a worker alone for a while, even where it is the only one: it may have ended, and that is known a moment later. */
  #shun(lane: EndpointRequests, workerId: string): void {
    if (lane.unreachable.has(workerId)) return;
    this.#log.info(
      { endpointId: lane.endpointId, workerId },
      'a worker that is said to be ready cannot be reached',
    );
    lane.unreachable.add(workerId);
    const over = (): void => {
      lane.unreachable.delete(workerId);
      this.#admitWaiting(lane);
      this.#forgetIdle(lane);
    };
    setTimeout(over, this.#limits.unreachableMs).unref();
  }

  #seat(lane: EndpointRequests, worker: Upstream, isNew: boolean): WorkerSlot {
    const { endpointId } = lane;
    const loadBefore = lane.loads.get(worker.id) ?? 0;
    lane.loads.set(worker.id, loadBefore + 1);
    lane.inFlight += 1;
    this.#pool.reportActivity(endpointId, worker.id, loadBefore + 1);
    if (isNew) this.#tell(lane);
    let left = false;
    const leave = (): void => {
      if (left) return;
      left = true;
      lane.inFlight -= 1;
      const load = (lane.loads.get(worker.id) ?? 1) - 1;
      if (load === 0) lane.loads.delete(worker.id);
      else lane.loads.set(worker.id, load);
      this.#pool.reportActivity(endpointId, worker.id, load);
      this.#tell(lane);
      if (lane.waiting.size > 0) this.#admitWaiting(lane);
      else this.#forgetIdle(lane);
    };
    return { worker, release: leave };
  }

  #admitWaiting(lane: EndpointRequests): void {
    let full = false;
    for (const waiting of lane.waiting) {
      const { affinity } = waiting.request;
      if (full && !isStrictAffinity(affinity)) continue;
      const worker = this.#choose(lane, affinity);
      if (worker !== undefined) waiting.assign(this.#seat(lane, worker, false));
      else if (!isStrictAffinity(affinity)) full = true;
      else if (!this.#isThere(lane.endpointId, affinity.workerId))
        waiting.reject(workerGone(affinity.workerId));
    }
  }

  /** Takes over what an endpoint says. */
  #heed(lane: EndpointRequests, endpoint: BalancedEndpoint): void {
    const before = lane.maxPerWorker;
    lane.maxPerWorker = maxRequestsPerWorker(endpoint);
    if (lane.maxPerWorker > before && lane.waiting.size > 0) this.#admitWaiting(lane);
  }

  /** Where the endpoint cannot be looked up, what was known of it goes on counting. */
  async #lookUp(lane: EndpointRequests): Promise<void> {
    const { endpointId } = lane;
    try {
      const endpoint = await this.#endpoints.find(endpointId);
      if (endpoint !== undefined) this.#heed(lane, endpoint);
      else for (const waiting of [...lane.waiting]) waiting.reject(notFound('endpoint', endpointId));
    } catch (error) {
      this.#log.warn({ err: error, endpointId }, 'an endpoint for which requests wait cannot be looked up');
    }
  }

  /** Looks whenever the pool has changed, as long as someone waits. */
  async #watch(lane: EndpointRequests): Promise<void> {
    const watching = new AbortController();
    lane.watch = watching;
    try {
      while (lane.watch === watching) {
        // Listening begins before the look: what changes in between is not missed.
        const changed = this.#pool.waitForChange(lane.endpointId, RECHECK_MS, watching.signal);
        this.#admitWaiting(lane);
        await this.#lookUp(lane);
        await changed;
      }
    } catch (error) {
      this.#log.error(
        { err: error, endpointId: lane.endpointId },
        'the workers of an endpoint cannot be watched; those who wait for one are sent away',
      );
      for (const waiting of [...lane.waiting]) waiting.reject(noWorkers());
    }
  }

  #lane(endpoint: BalancedEndpoint): EndpointRequests {
    const endpointId = endpoint.id;
    let lane = this.#fastPath.get(endpointId);
    if (lane === undefined) {
      lane = {
        endpointId,
        maxPerWorker: maxRequestsPerWorker(endpoint),
        loads: new Map(),
        inFlight: 0,
        waiting: new Set(),
        highestSequence: 0,
        watch: undefined,
        unreachable: new Set(),
      };
      this.#fastPath.set(endpointId, lane);
    }
    return lane;
  }

  #forgetIdle(lane: EndpointRequests): void {
    if (lane.inFlight === 0 && lane.waiting.size === 0 && lane.unreachable.size === 0)
      this.#fastPath.delete(lane.endpointId);
  }

  #tell(lane: EndpointRequests): void {
    this.#pool.reportDemand(lane.endpointId, lane.inFlight + lane.waiting.size);
  }
}

/** Its time to wait is over. */
function waitTimeoutError({ affinity }: PendingRequest): GatewayError {
  return isStrictAffinity(affinity) ? workerTimeout(affinity.workerId) : noWorkers();
}

/** Those who come stand behind the others; one that comes back stands where it stood. */
function enqueue(lane: EndpointRequests, waiting: WaitingRequest): void {
  lane.waiting.add(waiting);
  const { sequence } = waiting.request;
  if (sequence > lane.highestSequence) lane.highestSequence = sequence;
  else
    lane.waiting = new Set(
      [...lane.waiting].sort((one, other) => one.request.sequence - other.request.sequence),
    );
}

/** How many requests one worker has at the same time. */
function maxRequestsPerWorker({ scalerType, scalerValue }: BalancedEndpoint): number {
  return scalerType === 'REQUEST_COUNT' ? Math.max(1, Math.floor(scalerValue)) : 1;
}
